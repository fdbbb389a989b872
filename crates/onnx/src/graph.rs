//! The graph under construction: names, nodes, constants. What operators of PyTorch become is `ops`' matter.

use crate::element::{computed_in, initializer, onnx_dtype};
use crate::proto::{AttributeProto, GraphProto, NodeProto, StringStringEntryProto, TensorProto};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::slice::from_ref;
use tracefx_core::{DType, Result, Scalar, Tensor};

/// A value of the ONNX graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct X {
    pub(crate) name: Rc<str>,
    pub(crate) dtype: DType,
}

/// A size: known, or an int64 tensor of one element.
#[derive(Clone, Debug)]
pub(crate) enum Dim {
    Known(i64),
    Value(X),
}

impl From<i64> for Dim {
    fn from(it: i64) -> Self {
        Dim::Known(it)
    }
}

/// The nodes of a graph, perhaps those of a branch or of a loop, and what all graphs of the model share.
#[derive(Default)]
pub(crate) struct GraphBuilder {
    pub(crate) nodes: Vec<NodeProto>,
    pub(crate) initializers: Vec<TensorProto>,
    names: HashSet<Rc<str>>,
    constants: HashMap<(i32, Vec<i64>, Vec<u8>), X>,
    /// The node that is translated: what its nodes are called after, and told of.
    pub(crate) place: String,
    pub(crate) notes: Vec<StringStringEntryProto>,
}

/// An attribute of an int.
pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.to_string(), i: Some(value), r#type: 2, ..AttributeProto::default() }
}

/// An attribute of ints.
pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: name.to_string(), ints: values.to_vec(), r#type: 7, ..AttributeProto::default() }
}

/// An attribute of a float.
pub(crate) fn float(name: &str, value: f64) -> AttributeProto {
    AttributeProto { name: name.to_string(), f: Some(value as f32), r#type: 1, ..AttributeProto::default() }
}

/// An attribute of a text.
pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.to_string(), s: Some(value.into()), r#type: 3, ..AttributeProto::default() }
}

/// An attribute of a graph.
pub(crate) fn graph(name: &str, value: GraphProto) -> AttributeProto {
    AttributeProto { name: name.to_string(), g: Some(value), r#type: 5, ..AttributeProto::default() }
}

impl GraphBuilder {
    /// A name that nothing has: this one, or one with a number.
    pub(crate) fn fresh(&mut self, base: &str) -> Rc<str> {
        let mut name: Rc<str> = base.into();
        let mut n = 1;
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{n}").into();
            n += 1;
        }
        name
    }

    /// Adds a node of several results; an input without a name is not given. Nothing is cast.
    pub(crate) fn node(
        &mut self,
        op: &str,
        inputs: &[Option<&X>],
        attributes: Vec<AttributeProto>,
        dtypes: &[DType],
    ) -> Vec<X> {
        // The name of the table of kernels may say more than the operator's.
        let op = op.split(' ').next().unwrap_or(op);
        let base = format!("{}/{op}", self.place);
        let outputs: Vec<X> = dtypes.iter().map(|&dtype| X { name: self.fresh(&base), dtype }).collect();
        let mut input: Vec<String> =
            inputs.iter().map(|it| it.map_or(String::new(), |it| it.name.to_string())).collect();
        while input.last().is_some_and(String::is_empty) {
            input.pop();
        }
        self.nodes.push(NodeProto {
            input,
            output: outputs.iter().map(|it| it.name.to_string()).collect(),
            name: outputs.first().map_or(String::new(), |it| it.name.to_string()),
            op_type: op.to_string(),
            attribute: attributes,
            doc_string: String::new(),
            metadata_props: self.notes.clone(),
        });
        outputs
    }

    /// Adds a node of one result of this dtype. Nothing is cast.
    pub(crate) fn raw(&mut self, op: &str, inputs: &[&X], attributes: Vec<AttributeProto>, dtype: DType) -> X {
        let inputs: Vec<_> = inputs.iter().map(|it| Some(*it)).collect();
        self.node(op, &inputs, attributes, &[dtype]).remove(0)
    }

    /// Adds a node whose operands and result have one dtype, that of the first operand; it computes in the nearest that
    /// there is a kernel for.
    pub(crate) fn math_with(&mut self, op: &str, inputs: &[&X], attributes: Vec<AttributeProto>) -> Result<X> {
        let dtype = inputs[0].dtype;
        let (inputs, computed) = self.operands(op, inputs)?;
        let result = self.raw(op, &inputs.iter().collect::<Vec<_>>(), attributes, computed);
        self.cast(&result, dtype)
    }

    pub(crate) fn math(&mut self, op: &str, inputs: &[&X]) -> Result<X> {
        self.math_with(op, inputs, Vec::new())
    }

    /// Adds a node whose operands have one dtype, and whose results have these, whatever the operands are cast to.
    pub(crate) fn query(
        &mut self,
        op: &str,
        inputs: &[&X],
        attributes: Vec<AttributeProto>,
        dtype: DType,
    ) -> Result<X> {
        let (inputs, _) = self.operands(op, inputs)?;
        Ok(self.raw(op, &inputs.iter().collect::<Vec<_>>(), attributes, dtype))
    }

    /// A comparison, or another question of truth.
    pub(crate) fn test(&mut self, op: &str, inputs: &[&X]) -> Result<X> {
        self.query(op, inputs, Vec::new(), DType::Bool)
    }

    /// The operands as the dtype that there is a kernel for. Those of another dtype than the first, such as axes, stay.
    fn operands(&mut self, op: &str, inputs: &[&X]) -> Result<(Vec<X>, DType)> {
        let dtype = inputs[0].dtype;
        let computed = computed_in(op, dtype);
        let cast = |it: &&X| if it.dtype == dtype { self.cast(it, computed) } else { Ok((*it).clone()) };
        Ok((inputs.iter().map(cast).collect::<Result<_>>()?, computed))
    }

    /// The value as this dtype, as PyTorch converts it.
    pub(crate) fn cast(&mut self, x: &X, dtype: DType) -> Result<X> {
        if x.dtype == dtype {
            return Ok(x.clone());
        }
        let narrow = matches!(dtype, DType::UInt8 | DType::Int8 | DType::UInt16 | DType::Int16);
        // A float that does not fit is undefined in ONNX; PyTorch goes by way of a wider integer.
        let x = if x.dtype.is_float() && narrow { self.cast(x, DType::Int32)? } else { x.clone() };
        let mut attributes = vec![int("to", onnx_dtype(dtype)?.into())];
        // What is too large becomes the greatest number in `float8_e4m3fn` alone, and else NaN or infinity.
        if matches!(dtype, DType::Float8E4M3FNUZ | DType::Float8E5M2 | DType::Float8E5M2FNUZ) {
            attributes.push(int("saturate", 0));
        }
        Ok(self.raw("Cast", &[&x], attributes, dtype))
    }

    /// A constant; equal ones are one.
    pub(crate) fn constant(&mut self, tensor: &Tensor) -> Result<X> {
        let mut proto = initializer("", tensor)?;
        let key = (proto.data_type, proto.dims.clone(), proto.raw_data.clone());
        if let Some(known) = self.constants.get(&key) {
            return Ok(known.clone());
        }
        let x = X { name: self.fresh("constant"), dtype: tensor.dtype() };
        proto.name = x.name.to_string();
        self.initializers.push(proto);
        self.constants.insert(key, x.clone());
        Ok(x)
    }

    /// A constant without dimensions.
    pub(crate) fn scalar(&mut self, value: Scalar, dtype: DType) -> Result<X> {
        self.constant(&Tensor::full(dtype, &[], value)?)
    }

    pub(crate) fn number(&mut self, value: f64, dtype: DType) -> Result<X> {
        let value = if dtype.is_float() { Scalar::Float(value) } else { Scalar::Int(value as i64) };
        self.scalar(value, dtype)
    }

    /// A constant of ints in one dimension: axes, sizes.
    pub(crate) fn vector(&mut self, values: &[i64]) -> Result<X> {
        self.constant(&Tensor::from_slice(values, &[values.len()])?)
    }

    /// Sizes as a tensor.
    pub(crate) fn dims(&mut self, dims: &[Dim]) -> Result<X> {
        let known: Option<Vec<i64>> =
            dims.iter().map(|it| if let Dim::Known(it) = it { Some(*it) } else { None }).collect();
        if let Some(known) = known {
            return self.vector(&known);
        }
        let parts = dims.iter().map(|it| match it {
            Dim::Known(it) => self.vector(&[*it]),
            Dim::Value(it) => Ok(it.clone()),
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        if let [part] = &parts[..] {
            return Ok(part.clone());
        }
        Ok(self.raw("Concat", &parts.iter().collect::<Vec<_>>(), vec![int("axis", 0)], DType::Int64))
    }

    /// A number as a vector of one element.
    pub(crate) fn as_vector(&mut self, number: &X) -> Result<X> {
        let shape = self.vector(&[1])?;
        let number = self.cast(number, DType::Int64)?;
        Ok(self.raw("Reshape", &[&number, &shape], Vec::new(), DType::Int64))
    }

    /// The sizes of a value, as a tensor.
    pub(crate) fn shape_of(&mut self, x: &X) -> X {
        self.raw("Shape", &[x], Vec::new(), DType::Int64)
    }

    /// One size of a value, as a vector of one element.
    pub(crate) fn size_of(&mut self, x: &X, dim: i64) -> X {
        self.raw("Shape", &[x], vec![int("start", dim), int("end", dim + 1)], DType::Int64)
    }

    pub(crate) fn reshape(&mut self, x: &X, dims: &[Dim]) -> Result<X> {
        let infers = dims.iter().any(|it| matches!(it, Dim::Known(-1)));
        let shape = self.dims(dims)?;
        // A zero is a size of zero, and not that of the input; ONNX refuses it beside a size that is inferred.
        let attributes = if infers { Vec::new() } else { vec![int("allowzero", 1)] };
        Ok(self.raw("Reshape", &[x, &shape], attributes, x.dtype))
    }

    pub(crate) fn unsqueeze(&mut self, x: &X, dims: &[i64]) -> Result<X> {
        let axes = self.vector(dims)?;
        Ok(self.raw("Unsqueeze", &[x, &axes], Vec::new(), x.dtype))
    }

    pub(crate) fn squeeze(&mut self, x: &X, dims: &[i64]) -> Result<X> {
        if dims.is_empty() {
            return Ok(x.clone());
        }
        let axes = self.vector(dims)?;
        Ok(self.raw("Squeeze", &[x, &axes], Vec::new(), x.dtype))
    }

    pub(crate) fn transpose(&mut self, x: &X, order: &[i64]) -> X {
        self.raw("Transpose", &[x], vec![ints("perm", order)], x.dtype)
    }

    pub(crate) fn expand(&mut self, x: &X, shape: &X) -> Result<X> {
        self.math("Expand", &[x, shape])
    }

    /// `condition ? a : b`.
    pub(crate) fn choose(&mut self, condition: &X, a: &X, b: &X) -> Result<X> {
        let computed = computed_in("Where", a.dtype);
        let (yes, no) = (self.cast(a, computed)?, self.cast(b, computed)?);
        let result = self.raw("Where", &[condition, &yes, &no], Vec::new(), computed);
        self.cast(&result, a.dtype)
    }

    /// A part of one dimension.
    pub(crate) fn slice(&mut self, x: &X, dim: i64, start: &Dim, end: &Dim, step: i64) -> Result<X> {
        let (start, end) = (self.dims(from_ref(start))?, self.dims(from_ref(end))?);
        let (axes, steps) = (self.vector(&[dim])?, self.vector(&[step])?);
        Ok(self.raw("Slice", &[x, &start, &end, &axes, &steps], Vec::new(), x.dtype))
    }

    pub(crate) fn concat(&mut self, parts: &[&X], dim: i64) -> X {
        self.raw("Concat", parts, vec![int("axis", dim)], parts[0].dtype)
    }

    /// A reduction over these dimensions, which has an operand of its own for them.
    pub(crate) fn reduce(&mut self, op: &str, x: &X, dims: &[i64], keepdim: bool) -> Result<X> {
        if dims.is_empty() {
            return Ok(x.clone());
        }
        let axes = self.vector(dims)?;
        self.math_with(op, &[x, &axes], vec![int("keepdims", keepdim.into())])
    }

    pub(crate) fn not(&mut self, x: &X) -> X {
        self.raw("Not", &[x], Vec::new(), DType::Bool)
    }

    /// Gives the result of a node that was added from `start` on this name, unless it is one from before.
    pub(crate) fn rename(&mut self, start: usize, x: X, name: &str) -> X {
        let is_new = self.nodes[start..].iter().any(|it| it.output.iter().any(|it| **it == *x.name));
        if !is_new {
            return x;
        }
        let to = self.fresh(name);
        rename_in(&mut self.nodes[start..], &x.name, &to);
        X { name: to, dtype: x.dtype }
    }
}

/// Renames a value where it is given and taken, in the graphs of branches and loops too.
fn rename_in(nodes: &mut [NodeProto], from: &str, to: &str) {
    for node in nodes {
        let names = node.input.iter_mut().chain(&mut node.output).chain([&mut node.name]);
        names.filter(|it| *it == from).for_each(|it| *it = to.to_string());
        for graph in node.attribute.iter_mut().filter_map(|it| it.g.as_mut()) {
            rename_in(&mut graph.node, from, to);
        }
    }
}
