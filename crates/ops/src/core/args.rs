//! The arguments of one call as shape rules, decompositions and kernels read them, with errors that name the argument. They
//! were checked against the schema by `bind`.

use crate::{Op, Symbols, Tags, Value};
use tracefx_core::{Code, DType, Diagnostic, MemoryFormat, Result, Scalar};
use tracefx_ir::{Str, TensorMeta};
use tracefx_sym::{Expr, SymBool, SymInt};

/// The arguments of one call, one per argument of the schema and in its order, with the defaults filled in.
///
/// [`bind`](crate::bind) has checked them against the schema, so that the readers below fail only where a rule asks for
/// something that the schema does not promise; then the error says so.
#[derive(Debug)]
pub struct Args<'a, T> {
    /// The operator.
    pub op: &'a Op,
    /// The arguments.
    pub values: Vec<Value<T>>,
    /// What is known of the symbols in the arguments; nothing where a program runs, for there are none.
    pub(crate) symbols: Option<&'a Symbols>,
}

/// An argument of type `Tensor`, for which Python code may also give a number.
#[derive(Debug)]
pub enum Operand<'a, T> {
    /// A tensor.
    Tensor(&'a T),
    /// A number, which takes part in type promotion by its kind alone.
    Scalar(Scalar),
}

// Not derived: a reference is `Copy` whatever it refers to.
impl<T> Clone for Operand<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Operand<'_, T> {}

impl<'a, T> Args<'a, T> {
    /// The arguments of a call of `op`, already bound.
    pub fn new(op: &'a Op, values: Vec<Value<T>>) -> Self {
        Args { op, values, symbols: None }
    }

    /// The arguments of a call without data, where this is known of the symbols.
    pub fn within(op: &'a Op, values: Vec<Value<T>>, symbols: &'a Symbols) -> Self {
        Args { op, values, symbols: Some(symbols) }
    }

    /// Whether this holds for all values that the symbols may have; `None` where that cannot be told.
    pub fn decide(&self, condition: &SymBool) -> Option<bool> {
        condition.as_bool().or_else(|| self.symbols?.decide(condition))
    }

    /// Whether two sizes differ for all values that the symbols may have. A rule that refuses what differs takes all else to
    /// be equal, and a program that is exported asserts it of sizes that are unbacked.
    pub fn differ(&self, a: &SymInt, b: &SymInt) -> bool {
        match self.symbols {
            Some(symbols) if a != b && symbols.is_exporting() => !symbols.require(&SymBool::eq(a, b), None),
            _ => a != b && self.decide(&SymBool::ne(a, b)) == Some(true),
        }
    }

    /// Whether two sizes are equal for all values that the symbols may have.
    pub fn same(&self, a: &SymInt, b: &SymInt) -> bool {
        a == b || self.decide(&SymBool::eq(a, b)) == Some(true)
    }

    /// Whether these sizes are as many and equal for all values that the symbols may have.
    pub fn same_all(&self, a: &[SymInt], b: &[SymInt]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
    }

    /// Whether these sizes are as many and none is known to [differ](Args::differ) from its counterpart, which is then taken to
    /// be the same.
    pub fn agree(&self, a: &[SymInt], b: &[SymInt]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| !self.differ(a, b))
    }

    /// Whether a size is less than another one for all values that the symbols may have.
    pub fn less(&self, a: &SymInt, b: &SymInt) -> bool {
        self.decide(&SymBool::lt(a, b)) == Some(true)
    }

    /// The number that a value is. Where a program is exported, a size becomes the number that it is for the examples.
    pub fn specialize(&self, value: &SymInt) -> Option<i64> {
        value.as_int().or_else(|| self.symbols?.specialize(value))
    }

    /// Takes this to hold from here on, as a program does that asserts it. False where it cannot hold.
    pub fn assume(&self, condition: &SymBool) -> bool {
        match (condition.as_bool(), self.symbols) {
            (Some(known), _) => known,
            (None, Some(symbols)) => symbols.assume(condition),
            (None, None) => true,
        }
    }

    /// A size that only the data can tell, as a symbol of its own.
    pub fn new_size(&self) -> SymInt {
        self.symbols.map_or_else(Symbols::stand_in, Symbols::new_size)
    }

    /// The same for how many of so many elements or slices the data picks: none of none.
    pub fn new_size_up_to(&self, most: &SymInt) -> SymInt {
        if *most == 0 {
            return SymInt::ZERO;
        }
        self.symbols.map_or_else(Symbols::stand_in, |it| it.new_size_up_to(most))
    }

    /// The position of the argument of this name, which not all overloads have.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.op.schema.args.iter().position(|it| it.name == name)
    }

    /// The error of a dtype for which PyTorch has no kernel of this name either.
    pub(crate) fn no_kernel(&self, kernel: &str, dtype: DType) -> Diagnostic {
        let what = format!("\"{kernel}\" not implemented for '{}'", dtype.cpp_name());
        Diagnostic::new(Code::DTypeMismatch, what)
    }

    /// Makes the call compute what `out=` of this dtype is to hold: sums, scans and factories that have no `dtype` compute in
    /// the one of `out`.
    pub fn compute_for_out(&mut self, out: DType) {
        if let Some(at) = self.position("dtype")
            && matches!(self.values[at], Value::None)
            && !self.op.def.tags.has(Tags::OWN_DTYPE)
        {
            self.values[at] = Value::DType(out);
        }
    }

    /// Refuses to write a result to `out=`: of operators that have a `dtype`, it must have the dtype of the result.
    ///
    /// # Errors
    /// `DTypeMismatch`, and the operator is not in it.
    pub fn check_out(&self, result: DType, out: DType) -> Result<()> {
        if result == out || self.position("dtype").is_none() {
            return Ok(());
        }
        let what = format!("Expected out tensor to have dtype {}, but got {} instead", result.name(), out.name());
        Err(Diagnostic::new(Code::DTypeMismatch, what).help("give `out` the dtype of the result"))
    }

    /// A tensor.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none.
    pub fn tensor(&self, index: usize) -> Result<&T> {
        match &self.values[index] {
            Value::Tensor(it) => Ok(it),
            other => Err(self.mismatch(index, "a Tensor", other)),
        }
    }

    /// A tensor, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_tensor(&self, index: usize) -> Result<Option<&T>> {
        if self.is_none(index) { Ok(None) } else { self.tensor(index).map(Some) }
    }

    /// A tensor or a number.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else; `NotImplemented` where it is a number that is not known.
    pub fn operand(&self, index: usize) -> Result<Operand<'_, T>> {
        match &self.values[index] {
            Value::Tensor(it) => Ok(Operand::Tensor(it)),
            other => match (other.as_scalar(), other.as_expr()) {
                (Some(scalar), _) => Ok(Operand::Scalar(scalar)),
                (None, Some(expr)) => Err(self.unknown(index, &expr)),
                (None, None) => Err(self.mismatch(index, "a Tensor or a number", other)),
            },
        }
    }

    /// The tensors of a list.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is not a list of tensors.
    pub fn tensors(&self, index: usize) -> Result<Vec<&T>> {
        self.list(index)?
            .iter()
            .map(|it| match it {
                Value::Tensor(it) => Ok(it),
                other => Err(self.mismatch(index, "a list of Tensors", other)),
            })
            .collect()
    }

    /// The tensors of a list that may have gaps.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_tensors(&self, index: usize) -> Result<Vec<Option<&T>>> {
        self.list(index)?
            .iter()
            .map(|it| match it {
                Value::Tensor(it) => Ok(Some(it)),
                Value::None => Ok(None),
                other => Err(self.mismatch(index, "a list of Tensors and None", other)),
            })
            .collect()
    }

    /// A number.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none; `NotImplemented` where it is not known.
    pub fn scalar(&self, index: usize) -> Result<Scalar> {
        let value = &self.values[index];
        value.as_scalar().ok_or_else(|| match value.as_expr() {
            Some(expr) => self.unknown(index, &expr),
            None => self.mismatch(index, "a number", value),
        })
    }

    /// A number, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_scalar(&self, index: usize) -> Result<Option<Scalar>> {
        if self.is_none(index) { Ok(None) } else { self.scalar(index).map(Some) }
    }

    /// An int, perhaps symbolic.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none.
    pub fn sym_int(&self, index: usize) -> Result<&SymInt> {
        match &self.values[index] {
            Value::Int(it) => Ok(it),
            other => Err(self.mismatch(index, "an int", other)),
        }
    }

    /// An int that is known.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is not an int; `NotImplemented` where it is not known.
    pub fn int(&self, index: usize) -> Result<i64> {
        self.known(self.sym_int(index)?, index)
    }

    /// An int that is known, or nothing.
    ///
    /// # Errors
    /// As [`Args::int`].
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>> {
        if self.is_none(index) { Ok(None) } else { self.int(index).map(Some) }
    }

    /// An int, perhaps symbolic, or nothing.
    ///
    /// # Errors
    /// As [`Args::sym_int`].
    pub fn opt_sym_int(&self, index: usize) -> Result<Option<&SymInt>> {
        if self.is_none(index) { Ok(None) } else { self.sym_int(index).map(Some) }
    }

    /// A list of ints, perhaps symbolic.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn sym_ints(&self, index: usize) -> Result<Vec<SymInt>> {
        self.list(index)?
            .iter()
            .map(|it| match it {
                Value::Int(it) => Ok(it.clone()),
                other => Err(self.mismatch(index, "a list of ints", other)),
            })
            .collect()
    }

    /// A list of ints that are known.
    ///
    /// # Errors
    /// As [`Args::int`].
    pub fn ints(&self, index: usize) -> Result<Vec<i64>> {
        self.sym_ints(index)?.iter().map(|it| self.known(it, index)).collect()
    }

    /// A list of ints that are known, or nothing.
    ///
    /// # Errors
    /// As [`Args::int`].
    pub fn opt_ints(&self, index: usize) -> Result<Option<Vec<i64>>> {
        if self.is_none(index) { Ok(None) } else { self.ints(index).map(Some) }
    }

    /// A float.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is not a number, `InvalidArgument` where it is not a real one.
    pub fn float(&self, index: usize) -> Result<f64> {
        match self.scalar(index)? {
            Scalar::Complex(it) if it.im != 0.0 => {
                Err(self.invalid("value cannot be converted to type double without overflow"))
            }
            it => Ok(it.to_f64()),
        }
    }

    /// A float, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_float(&self, index: usize) -> Result<Option<f64>> {
        if self.is_none(index) { Ok(None) } else { self.float(index).map(Some) }
    }

    /// A list of floats, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_floats(&self, index: usize) -> Result<Option<Vec<f64>>> {
        if self.is_none(index) {
            return Ok(None);
        }
        let float = |it: &Value<T>| {
            it.as_scalar().map(Scalar::to_f64).ok_or_else(|| self.mismatch(index, "a list of floats", it))
        };
        self.list(index)?.iter().map(float).collect::<Result<_>>().map(Some)
    }

    /// A bool.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none.
    pub fn bool(&self, index: usize) -> Result<bool> {
        match &self.values[index] {
            Value::Bool(it) => Ok(*it),
            Value::SymBool(it) => Err(self.unknown(index, &it.clone().into())),
            other => Err(self.mismatch(index, "a bool", other)),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none.
    pub fn str(&self, index: usize) -> Result<&str> {
        match &self.values[index] {
            Value::Str(it) => Ok(it),
            other => Err(self.mismatch(index, "a str", other)),
        }
    }

    /// A string, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_str(&self, index: usize) -> Result<Option<&str>> {
        if self.is_none(index) { Ok(None) } else { self.str(index).map(Some) }
    }

    /// A dtype, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_dtype(&self, index: usize) -> Result<Option<DType>> {
        match &self.values[index] {
            Value::None => Ok(None),
            Value::DType(it) => Ok(Some(*it)),
            other => Err(self.mismatch(index, "a dtype", other)),
        }
    }

    /// A memory format, or nothing.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is something else.
    pub fn opt_memory_format(&self, index: usize) -> Result<Option<MemoryFormat>> {
        match &self.values[index] {
            Value::None => Ok(None),
            Value::MemoryFormat(it) => Ok(Some(*it)),
            other => Err(self.mismatch(index, "a memory format", other)),
        }
    }

    /// The items of a list.
    ///
    /// # Errors
    /// `SchemaMismatch` where the argument is none.
    pub fn list(&self, index: usize) -> Result<&[Value<T>]> {
        match &self.values[index] {
            Value::List(items) => Ok(items),
            other => Err(self.mismatch(index, "a list", other)),
        }
    }

    /// Whether the argument is `None`.
    pub fn is_none(&self, index: usize) -> bool {
        matches!(self.values[index], Value::None)
    }

    /// An error about a value that the operator refuses.
    pub fn invalid(&self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::InvalidArgument, what).op(&*self.op.name)
    }

    /// An error about shapes that do not fit.
    pub fn bad_shape(&self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::ShapeMismatch, what).op(&*self.op.name)
    }

    /// An error about something of this operator that is not implemented.
    pub fn unsupported(&self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::NotImplemented, what).op(&*self.op.name)
    }

    /// An error about an argument that is a symbol where a number is needed.
    pub fn unknown(&self, index: usize, expr: &Expr) -> Diagnostic {
        let name = &self.op.schema.args[index].name;
        self.unsupported(format!("argument `{name}` is symbolic ({expr}) and has to be known here"))
    }

    fn known(&self, value: &SymInt, index: usize) -> Result<i64> {
        self.specialize(value).ok_or_else(|| self.unknown(index, &value.clone().into()))
    }

    fn mismatch(&self, index: usize, expected: &str, got: &Value<T>) -> Diagnostic {
        let name = &self.op.schema.args[index].name;
        let what = format!("argument `{name}` should be {expected} but is {}", got.kind_name());
        Diagnostic::new(Code::SchemaMismatch, what).op(&*self.op.name)
    }
}

/// Positional arguments, and those by name.
type Parted<'a, T> = (&'a [Value<T>], Vec<(Str, Value<T>)>);

impl<T: Clone> Args<'_, T> {
    /// The arguments that go by position, and with their names those that cannot.
    pub fn parted(&self) -> Parted<'_, T> {
        let n_positional = self.op.schema.n_positional();
        let (positional, named) = self.values.split_at(n_positional);
        let names = self.op.schema.args[n_positional..].iter().map(|it| Str::from(it.name.as_str()));
        (positional, names.zip(named.iter().cloned()).collect())
    }
}

impl<T: PartialEq> Args<'_, T> {
    /// The arguments as PyTorch's dispatcher hands them on, which is how graphs have them: how many go by position, and
    /// where those stand that go by name. Those that are the defaults are left out.
    pub fn written(&self) -> (usize, Vec<usize>) {
        let specs = &self.op.schema.args;
        let is_default = |at: usize| specs[at].default_value().as_ref() == Some(&self.values[at]);
        let n_positional = self.op.schema.n_positional();
        let n_given = (0..n_positional).rev().find(|&at| !is_default(at)).map_or(0, |it| it + 1);
        (n_given, (n_positional..specs.len()).filter(|&at| !is_default(at)).collect())
    }
}

impl Args<'_, TensorMeta> {
    /// The only element of a tensor of this dtype, as a symbol of its own.
    pub fn new_item(&self, dtype: DType) -> Value<TensorMeta> {
        self.symbols.map_or(Value::None, |it| it.new_item(dtype))
    }
}
