//! Operators of one's own: rows with closures. They are checked here, and kept by the registry.

use crate::core::bind::coerce;
use crate::core::gradients::Vjp;
use crate::{ArgType, Args, Backward, Cx, Expr, Infer, Op, OpDef, Output, Schema, Tags, TensorRef, Tol, Traced, Value};
use std::fmt;
use std::sync::Arc;
use tracefx_core::{Code, DTypes, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// An operator of one's own, to be put into a [`Registry`](crate::Registry): PyTorch's `torch.library.custom_op`.
///
/// What it is is said as for the operators of the tables, with closures in the place of functions. All of it may be left
/// out but the schema; what then asks for it is refused. A kernel is given to the executor by the operator's name.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_ir::TensorMeta;
/// use tracefx_ops::{CustomOp, Output, Propagation, Symbols, Value, registry};
///
/// let schema = "mylib::scale_add(Tensor x, Tensor y, float alpha=2.0) -> Tensor";
/// let mut ops = registry().clone();
/// ops.define(CustomOp::new(schema)?.shape(|args| Ok(vec![Output::Tensor(args.tensor(0)?.clone())])))?;
///
/// let x = Value::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]));
/// let symbols = Symbols::default();
/// let results = Propagation::new(&ops, &symbols).call("mylib.scale_add.default", &[x.clone(), x.clone()], &[])?;
/// assert_eq!(results, [x]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct CustomOp {
    schema: Schema,
    functions: Functions,
    vjp: Option<Vjp>,
    tags: Tags,
    tolerance: Tol,
}

type Shape = dyn Fn(&Args<'_, TensorMeta>) -> Result<Vec<Output>> + Send + Sync;
type Compose = dyn Fn(&mut Cx<'_>, &Args<'_, TensorRef>) -> Result<Vec<Traced>> + Send + Sync;
type Formulas = dyn Fn(&Backward<'_>) -> Result<Vec<Expr>> + Send + Sync;

/// What a custom operator's row leads to: the functions of the row find these by the operator that they are called for.
#[derive(Clone, Default)]
pub(crate) struct Functions {
    shape: Option<Arc<Shape>>,
    decompose: Option<Arc<Compose>>,
    vjp: Option<Arc<Formulas>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions")
            .field("shape", &self.shape.is_some())
            .field("decompose", &self.decompose.is_some())
            .field("vjp", &self.vjp.is_some())
            .finish()
    }
}

/// Namespaces whose names mean something else: `prim` is reserved by PyTorch too, the others are not operators to it.
const RESERVED: &[&str] = &["prim", "higher_order", "operator", "math", "torch"];

impl CustomOp {
    /// An operator with this schema, such as `mylib::foo(Tensor x, *, int n=1) -> Tensor`. Arguments that it writes to are
    /// marked: `Tensor(a!) x`.
    ///
    /// # Errors
    /// `SchemaMismatch`, with the position, where the text is not a schema or names an argument twice; `InvalidOption`
    /// where the namespace is reserved.
    pub fn new(schema: &str) -> Result<Self> {
        let schema = Schema::parse(schema)?;
        if RESERVED.contains(&schema.namespace.as_str()) {
            let what = format!("{} is a reserved namespace", schema.namespace);
            return Err(
                Diagnostic::new(Code::InvalidOption, what).help("define the operator in a namespace of your own")
            );
        }
        for (at, spec) in schema.args.iter().enumerate() {
            if schema.args[..at].iter().any(|it| it.name == spec.name) {
                let what = format!("the argument `{}` stands twice in the schema `{schema}`", spec.name);
                return Err(Diagnostic::new(Code::SchemaMismatch, what));
            }
        }
        Ok(CustomOp { schema, functions: Functions::default(), vjp: None, tags: Tags::NONE, tolerance: Tol::Default })
    }

    /// Says what the results are, without data: one per result of the schema. An operator without results needs no rule.
    #[must_use]
    pub fn shape(
        mut self,
        rule: impl Fn(&Args<'_, TensorMeta>) -> Result<Vec<Output>> + Send + Sync + 'static,
    ) -> Self {
        self.functions.shape = Some(Arc::new(rule));
        self
    }

    /// Says how it is made of other operators: then it needs neither kernel nor shape rule, and decomposed programs do
    /// not contain it.
    #[must_use]
    pub fn decompose(
        mut self,
        decompose: impl Fn(&mut Cx<'_>, &Args<'_, TensorRef>) -> Result<Vec<Traced>> + Send + Sync + 'static,
    ) -> Self {
        self.functions.decompose = Some(Arc::new(decompose));
        self
    }

    /// Says how gradients go back through it: a formula per argument of the schema.
    #[must_use]
    pub fn vjp(mut self, formulas: impl Fn(&Backward<'_>) -> Result<Vec<Expr>> + Send + Sync + 'static) -> Self {
        self.functions.vjp = Some(Arc::new(formulas));
        self.vjp = Some(Vjp::Of(formulas_of));
        self
    }

    /// Says that no gradient flows through it.
    #[must_use]
    pub fn no_gradient(mut self) -> Self {
        self.vjp = Some(Vjp::None);
        self
    }

    /// Gives it properties.
    #[must_use]
    pub fn tags(mut self, tags: Tags) -> Self {
        self.tags = self.tags.with(tags);
        self
    }

    /// Says how near its results are; [`Tol::Default`] if nothing is said.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tol) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The qualified name without `torch.ops.`, such as `mylib.foo.default`.
    pub fn name(&self) -> String {
        self.schema.qualified_name()
    }

    pub(crate) fn into_op(self) -> Op {
        let is_composite = self.functions.shape.is_none() && self.functions.decompose.is_some();
        let infer = if is_composite { Infer::Composite } else { Infer::Rule(rule_of) };
        let def = OpDef {
            tags: self.tags,
            decompose: self.functions.decompose.as_ref().map(|_| decompose_of as crate::Decompose),
            vjp: self.vjp,
            tolerance: self.tolerance,
            ..OpDef::inferred("", infer)
        };
        let name = self.schema.qualified_name();
        Op {
            def,
            schema: self.schema,
            name,
            family: "custom",
            refused: DTypes::NONE,
            refused_empty: DTypes::NONE,
            custom: Some(self.functions),
        }
    }
}

impl Op {
    /// Whether it is no row of the tables but was defined by a [`CustomOp`].
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Whether a custom operator says what its results are without calling other operators.
    pub fn has_shape_rule(&self) -> bool {
        match &self.custom {
            Some(custom) => custom.shape.is_some() || self.schema.returns.is_empty(),
            None => matches!(self.def.infer, Infer::Rule(_)),
        }
    }

    /// What a kernel or a rule of a custom operator gave, in the types of the schema: an int for a float is one.
    ///
    /// # Errors
    /// `SchemaMismatch`, naming the result, where there are more or fewer than the schema says, or one is of another type.
    pub fn check_results<T: Clone>(&self, results: Vec<Value<T>>, whose: &str) -> Result<Vec<Value<T>>> {
        let refuse = |what: String| {
            let what = format!("{whose} of {} {what}", self.name);
            Diagnostic::new(Code::SchemaMismatch, what).op(&*self.name).help(format!("the schema is {}", self.schema))
        };
        let returns = &self.schema.returns;
        if results.len() != returns.len() {
            return Err(refuse(format!("gives {} results instead of {}", results.len(), returns.len())));
        }
        let one = |(at, (value, spec)): (usize, (Value<T>, &crate::ReturnSpec))| {
            result_as(&value, &spec.ty).ok_or_else(|| {
                refuse(format!("gives {} as result {at}, which should be {}", value.kind_name(), spec.ty.describe()))
            })
        };
        results.into_iter().zip(returns).enumerate().map(one).collect()
    }
}

/// As [`coerce`], but a number is no tensor.
fn result_as<T: Clone>(value: &Value<T>, ty: &ArgType) -> Option<Value<T>> {
    match (ty, value) {
        (ArgType::Optional(_), Value::None) => Some(Value::None),
        (ArgType::Optional(inner), _) => result_as(value, inner),
        (ArgType::List(inner, _), Value::List(items)) => {
            items.iter().map(|it| result_as(it, inner)).collect::<Option<_>>().map(Value::List)
        }
        (ArgType::List(..), _) => None,
        (ArgType::Tensor, Value::Tensor(_)) => Some(value.clone()),
        (ArgType::Tensor, _) => None,
        (_, _) => coerce(value, ty),
    }
}

fn functions(op: &Op) -> &Functions {
    op.custom.as_ref().expect("the rows of custom operators have their functions")
}

fn rule_of(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let Some(rule) = &functions(args.op).shape else {
        if args.op.schema.returns.is_empty() {
            return Ok(Vec::new());
        }
        return Err(args
            .unsupported(format!("the operator {} has no shape rule", args.op.name))
            .help("give it one: CustomOp::shape in Rust, torch.library.registerFake in TypeScript"));
    };
    let outputs = rule(args)?;
    let values = outputs.iter().map(|it| it.value(args)).collect();
    args.op.check_results(values, "the shape rule")?;
    Ok(outputs)
}

fn decompose_of(cx: &mut Cx<'_>, args: &Args<'_, TensorRef>) -> Result<Vec<Traced>> {
    match &functions(args.op).decompose {
        Some(decompose) => args.op.check_results(decompose(cx, args)?, "the decomposition"),
        None => Err(args.unsupported(format!("the operator {} has no decomposition", args.op.name))),
    }
}

fn formulas_of(backward: &Backward<'_>) -> Result<Vec<Expr>> {
    match &functions(backward.op()).vjp {
        Some(formulas) => formulas(backward),
        None => Err(backward.args.unsupported(format!("the gradient of {} is not implemented", backward.op().name))),
    }
}
