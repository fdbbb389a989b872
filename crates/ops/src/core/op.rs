//! A row of the registry: the schema and everything that is said of an operator beside it. Kernels join it by its name, in
//! the crates of the backends.

use crate::core::custom::Functions;
use crate::core::gradients::{Vjp, VjpFn};
use crate::{Args, Cx, Output, Schema, TensorRef, Traced};
use tracefx_core::{DType, DTypes, Result};
use tracefx_ir::TensorMeta;

/// What an operator is, as one row of the registry's table.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// The ATen schema, exactly PyTorch's text. That of a custom operator is in [`Op::schema`] alone.
    pub schema: &'static str,
    /// One or more sentences about what it computes.
    pub doc: &'static str,
    /// Its properties.
    pub tags: Tags,
    /// Where the shapes of its results come from.
    pub infer: Infer,
    /// How it is made of other operators, for backends without a kernel.
    pub decompose: Option<Decompose>,
    /// Of an operator that is wholly made of others, its shape rule for sizes of which the decomposition has to know more
    /// than there is to know. There it stays whole.
    pub uncomposed: Option<Rule>,
    /// How gradients go back through it; through its decomposition where nothing is said.
    pub vjp: Option<Vjp>,
    /// Of a view, what its storage holds once the view has changed.
    pub write_back: Option<WriteBack>,
    /// How near its results are to the exact ones.
    pub tolerance: Tol,
    /// The operators that write what it computes into its first argument: `add_.Tensor`. The registry makes their rows.
    pub in_place: &'static [&'static str],
}

/// A shape rule: the results' dtypes, sizes, strides and aliasing, from the arguments without their data.
pub type Rule = fn(&Args<'_, TensorMeta>) -> Result<Vec<Output>>;

/// A decomposition: calls other operators through the context and gives back the results.
pub type Decompose = fn(&mut Cx<'_>, &Args<'_, TensorRef>) -> Result<Vec<Traced>>;

/// What a tensor becomes when a view of it gets new values: takes the arguments of the call that made the view, the new
/// values, and which of several views it is.
pub type WriteBack = fn(&mut Cx<'_>, &Args<'_, TensorRef>, &Traced, usize) -> Result<Traced>;

/// Where the shapes of an operator's results come from.
#[derive(Clone, Copy, Debug)]
pub enum Infer {
    /// A rule of its own.
    Rule(Rule),
    /// It computes what this functional operator computes and writes it into its first argument.
    InPlaceOf(&'static str),
    /// Its decomposition says, operator by operator.
    Composite,
}

/// Properties of an operator. Shared code asks for a property and never for "which operator".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags(u32);

impl Tags {
    /// No property.
    pub const NONE: Tags = Tags(0);
    /// One of the core ATen operators, into which all others decompose.
    pub const CORE: Tags = Tags(1);
    /// Each element of the result depends on the elements at the same place alone.
    pub const POINTWISE: Tags = Tags(1 << 1);
    /// Dimensions are reduced to one value.
    pub const REDUCTION: Tags = Tags(1 << 2);
    /// The first two arguments may change places.
    pub const COMMUTATIVE: Tags = Tags(1 << 3);
    /// The result looks at the storage of an argument.
    pub const VIEW: Tags = Tags(1 << 4);
    /// The result depends on a random generator.
    pub const RANDOM: Tags = Tags(1 << 5);
    /// It does something besides giving a result: it must not be removed.
    pub const SIDE_EFFECT: Tags = Tags(1 << 6);
    /// The sizes of the results depend on the data of the arguments.
    pub const DATA_DEPENDENT_SHAPE: Tags = Tags(1 << 7);

    /// The storage of the first argument may have to grow for the view that it becomes.
    pub const RESIZES: Tags = Tags(1 << 9);

    /// It may write to an argument though its schema does not say so: batch norms in training.
    pub const WRITES_UNMARKED: Tags = Tags(1 << 8);
    /// Not a core operator, and yet not in `default_decompositions()`: decomposed programs keep it.
    pub const NOT_DECOMPOSED: Tags = Tags(1 << 10);
    /// A core operator, and yet in `default_decompositions()`.
    pub const DECOMPOSED: Tags = Tags(1 << 11);
    /// Chains of it may be joined in any way, up to the rounding of floats.
    pub const ASSOCIATIVE: Tags = Tags(1 << 12);
    /// Of an operator with a `dtype`: without one, `out=` must have the dtype of the result, and does not say which it is.
    pub const OWN_DTYPE: Tags = Tags(1 << 13);
    /// The result may be an argument, though the schema does not say so.
    pub const MAY_GIVE_ARGUMENT: Tags = Tags(1 << 14);
    /// The second operand, given as a number or as a tensor without dimensions, takes part as it is. Of all other operators,
    /// an operand is rounded to half precision first, where that is what they compute in.
    pub const KEEPS_NUMBERS: Tags = Tags(1 << 15);
    /// The numbers beside the operands (`alpha`, `eps`, `lambd`) are rounded to half precision too, where it computes in that.
    pub const ROUNDS_NUMBERS: Tags = Tags(1 << 16);
    /// The results are memory of their own, though the operator is made of others that may give a view.
    pub const FRESH: Tags = Tags(1 << 17);
    /// Of a view: where the order of memory allows none, the result is a copy.
    pub const MAY_COPY: Tags = Tags(1 << 18);
    /// In place, it may write to elements that share a place in memory, since all of them get the same.
    pub const WRITES_SHARED: Tags = Tags(1 << 19);

    /// The properties as the bits of a number, which is written in files: a property keeps its bit.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The properties of these bits.
    pub const fn of_bits(bits: u32) -> Self {
        Tags(bits)
    }

    /// Both sets of properties.
    pub const fn with(self, other: Tags) -> Tags {
        Tags(self.0 | other.0)
    }

    /// Whether all of these properties are there.
    pub const fn has(self, other: Tags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How near a result must be to PyTorch's: `|a - b| <= atol + rtol * |b|`, by dtype of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tol {
    /// Bit for bit: data movement, integers, comparisons.
    Exact,
    /// The default of PyTorch's own tests for the dtype.
    Default,
    /// The default, times a factor, for long sums and chains of transcendental functions.
    Scaled(f64),
}

impl Tol {
    /// Relative and absolute tolerance for results of this dtype. The defaults are those of `torch.testing`
    /// (float32 1.3e-6 and 1e-5, float16 1e-3, bfloat16 1.6e-2, float64 1e-7); integers and bools are always exact.
    pub fn for_dtype(self, dtype: DType) -> (f64, f64) {
        let (rtol, atol) = match dtype {
            DType::Float16 | DType::Complex32 => (1e-3, 1e-5),
            DType::BFloat16 => (1.6e-2, 1e-5),
            DType::Float32 | DType::Complex64 => (1.3e-6, 1e-5),
            DType::Float64 | DType::Complex128 => (1e-7, 1e-7),
            DType::Bool
            | DType::UInt8
            | DType::Int8
            | DType::UInt16
            | DType::Int16
            | DType::UInt32
            | DType::Int32
            | DType::UInt64
            | DType::Int64
            | DType::Float8E4M3FN
            | DType::Float8E5M2
            | DType::Float8E4M3FNUZ
            | DType::Float8E5M2FNUZ
            | DType::Float8E8M0FNU => (0.0, 0.0),
        };
        match self {
            Tol::Exact => (0.0, 0.0),
            Tol::Default => (rtol, atol),
            Tol::Scaled(factor) => (rtol * factor, atol * factor),
        }
    }
}

impl Op {
    /// Whether the result is the first argument itself, which the operator worked on in place.
    pub fn returns_self(&self) -> bool {
        let is_alias = matches!(self.schema.returns.as_slice(), [only] if only.is_alias);
        is_alias && self.schema.args.first().is_some_and(|it| it.is_mutated)
    }

    /// Whether it changes how the first argument looks at its storage, so that whoever holds it must take the result in
    /// its place.
    pub fn reshapes_self(&self) -> bool {
        self.returns_self() && self.def.tags.has(Tags::VIEW)
    }

    /// Whether its results go into arguments that are given by name: `out`, or one for each result.
    pub fn writes_out(&self) -> bool {
        self.schema.args.iter().any(|it| it.is_mutated && it.is_kwarg_only)
    }

    /// Whether a result may be an argument, or look at the storage of one.
    pub fn may_alias(&self) -> bool {
        self.schema.returns.iter().any(|it| it.is_alias)
    }

    /// Whether PyTorch's `default_decompositions()` have it.
    pub fn is_decomposed(&self) -> bool {
        let tags = self.def.tags;
        let keeps = if tags.has(Tags::CORE) { !tags.has(Tags::DECOMPOSED) } else { tags.has(Tags::NOT_DECOMPOSED) };
        self.def.decompose.is_some() && !keeps
    }

    /// Whether a call may write to an argument.
    pub fn may_write(&self) -> bool {
        self.def.tags.has(Tags::WRITES_UNMARKED) || self.schema.args.iter().any(|it| it.is_mutated)
    }
}

impl OpDef {
    /// An operator with this schema and shape rule. Its tolerance is [`Tol::Exact`] until it is said otherwise.
    pub const fn new(schema: &'static str, rule: Rule) -> Self {
        OpDef { tolerance: Tol::Exact, ..Self::inferred(schema, Infer::Rule(rule)) }
    }

    /// An operator of which nothing more is known.
    pub(crate) const fn inferred(schema: &'static str, infer: Infer) -> Self {
        OpDef {
            schema,
            doc: "",
            tags: Tags::NONE,
            infer,
            decompose: None,
            uncomposed: None,
            vjp: None,
            write_back: None,
            tolerance: Tol::Default,
            in_place: &[],
        }
    }

    /// An operator that is wholly made of others.
    pub const fn composite(schema: &'static str, decompose: Decompose) -> Self {
        Self::inferred(schema, Infer::Composite).decompose(decompose)
    }

    /// An operator that writes what another one computes into its first argument, and whose row does not follow from that
    /// one's ([`Self::in_place`]).
    pub const fn in_place_of(schema: &'static str, functional: &'static str) -> Self {
        Self::inferred(schema, Infer::InPlaceOf(functional))
    }

    /// Says what it computes. Modules of WebAssembly leave it out: what shows it is printed by a native program.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        if !cfg!(target_arch = "wasm32") {
            self.doc = doc;
        }
        self
    }

    /// Gives it properties.
    pub const fn tags(mut self, tags: Tags) -> Self {
        self.tags = self.tags.with(tags);
        self
    }

    /// Says how it is made of other operators.
    pub const fn decompose(mut self, decompose: Decompose) -> Self {
        self.decompose = Some(decompose);
        self
    }

    /// Says what its results are where its decomposition has to know more of the sizes.
    pub const fn uncomposed(mut self, rule: Rule) -> Self {
        self.uncomposed = Some(rule);
        self
    }

    /// Says how gradients go back through it.
    pub const fn vjp(mut self, formulas: VjpFn) -> Self {
        self.vjp = Some(Vjp::Of(formulas));
        self
    }

    /// Says how gradients go back through the first so many results, and that none goes through the others.
    pub const fn vjp_of_first(mut self, n_results: usize, formulas: VjpFn) -> Self {
        self.vjp = Some(Vjp::OfFirst(n_results, formulas));
        self
    }

    /// Says that no gradient flows through it, though its results may be floats.
    pub const fn no_gradient(mut self) -> Self {
        self.vjp = Some(Vjp::None);
        self
    }

    /// Says what a change of the view changes.
    pub const fn write_back(mut self, write_back: WriteBack) -> Self {
        self.write_back = Some(write_back);
        self
    }

    /// Names the operators that write what it computes into its first argument. Their schemas follow from its own: the
    /// first argument is `Tensor(a!) self`, and the result is that.
    pub const fn in_place(mut self, names: &'static [&'static str]) -> Self {
        self.in_place = names;
        self
    }

    /// The row of one of these operators, which computes what `functional`, this one, computes.
    pub(crate) fn in_place_row(&self, functional: &str, name: &str) -> Self {
        let (head, args) = self.schema.split_once("(Tensor ").expect("the first argument is a tensor");
        let (namespace, _) = head.split_once("::").expect("a schema has a namespace");
        let more = args.trim_start_matches(|it: char| it.is_alphanumeric() || it == '_');
        let (more, _) = more.rsplit_once(" -> ").expect("a schema says what it gives");
        let kept = |tag| if self.tags.has(tag) { tag } else { Tags::NONE };
        let schema = leaked(format!("{namespace}::{name}(Tensor(a!) self{more} -> Tensor(a!)"));
        OpDef::in_place_of(schema, leaked(functional.to_string()))
            .doc(leaked(in_place_doc(self.doc)))
            .tags(kept(Tags::RANDOM).with(kept(Tags::WRITES_SHARED)))
            .tolerance(self.tolerance)
    }

    /// Says how near its results are.
    pub const fn tolerance(mut self, tolerance: Tol) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// What a form in place computes, by what the operator does.
fn in_place_doc(doc: &str) -> String {
    let mut letters = doc.chars();
    let is_word = |it: &str| it.starts_with(char::is_uppercase) && !it[1..].starts_with(char::is_uppercase);
    match letters.next() {
        Some(first) if is_word(doc) => format!("In place: {}{}", first.to_lowercase(), letters.as_str()),
        _ => format!("In place: {doc}"),
    }
}

/// A text of the table, which lives as long as the program does.
fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// An operator of the registry: its row with the schema parsed.
#[derive(Clone, Debug)]
pub struct Op {
    /// The row.
    pub def: OpDef,
    /// The parsed schema.
    pub schema: Schema,
    /// The qualified name without `torch.ops.`, such as `aten.add.Tensor`.
    pub name: String,
    /// The file of its row, below the sources of this crate, which it is listed with: `conv/forward`.
    pub family: &'static str,
    /// The dtypes that PyTorch's CPU has no kernel for: a call whose tensors are of one of them is refused.
    pub refused: DTypes,
    /// Those of them that it refuses where there is nothing to compute, too.
    pub refused_empty: DTypes,
    /// What the row of a custom operator leads to.
    pub(crate) custom: Option<Functions>,
}
