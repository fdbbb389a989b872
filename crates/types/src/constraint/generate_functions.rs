//! The rules of functions and methods.

use super::generate::{Generator, Symbol, refuse};
use super::{Arithmetic, Constraint, DimTerm, MAX_TENSOR_RANK, Relation, SizeTerm, TypeTerm};
use crate::check::place;
use tracefx_core::Result;
use tracefx_ir::{Arg, Node, NodeId, Opcode};

fn is_dyn(var: u32) -> Constraint {
    Constraint::types(var, TypeTerm::Dyn)
}

fn is_number(arg: &Arg) -> bool {
    matches!(arg, Arg::Int(_) | Arg::Float(_))
}

impl Generator<'_> {
    pub(super) fn call(&mut self, id: NodeId, node: &Node) -> Result<()> {
        match (node.op() == Opcode::CallMethod, &**node.target()) {
            (false, "builtins.getattr" | "getattr") => match node.args().get(1) {
                Some(Arg::Str(name)) if &**name == "device" => self.same(id, node),
                _ => Err(refuse("of attributes only `device` has a rule".into())),
            },
            (false, "torch.bmm") => self.bmm(id, node),
            (true, "index_select") => self.index_select(id, node),
            (true, "expand") => self.expand(id, node),
            (false, "torch.nn.functional.gelu" | "torch.nn.functional.dropout" | "torch.nn.functional.softmax")
            | (true, "detach" | "to" | "int" | "long" | "contiguous")
            | (false, "torch.ones" | "torch.zeros") => self.equality(id, node),
            (true, "transpose") => self.transpose(id, node),
            (true, "type_as") => {
                let output = self.type_of(id);
                let (from, to) = (self.type_arg(node, 0)?, self.type_arg(node, 1)?);
                self.out.push(Constraint::Type(from.into(), Relation::Consistency, to.into()));
                self.out.push(Constraint::types(output, to));
                Ok(())
            }
            (true, "masked_fill_") => {
                let (a, b) = (self.type_arg(node, 0)?, self.type_arg(node, 1)?);
                let output = self.type_of(id);
                self.broadcast(a, b, output);
                Ok(())
            }
            (false, "torch.nn.functional.embedding") => {
                let weight = self.counter.dims(2);
                self.out.push(Constraint::types(self.type_arg(node, 1)?, &weight));
                self.embedding(id, node, weight[1])
            }
            (false, "torch.nn.functional.linear" | "torch._C._nn.linear") => {
                let weight = self.counter.dims(2);
                self.out.push(Constraint::types(self.type_arg(node, 1)?, &weight));
                self.linear(id, node, weight[1], weight[0])
            }
            (false, "torch.nn.functional.layer_norm") => match node.args().get(1) {
                Some(Arg::List(items) | Arg::Tuple(items)) => {
                    let sizes = items.iter().map(|it| if let Arg::Int(it) = it { Some(*it) } else { None });
                    let sizes: Option<Vec<i64>> = sizes.collect();
                    self.layer_norm(
                        id,
                        node,
                        &sizes.ok_or_else(|| refuse("the normalized shape is of numbers".into()))?,
                    )
                }
                _ => Err(refuse("the normalized shape is a list of numbers".into())),
            },
            // A scalar has no type that constraints speak of.
            (false, "torch.tensor" | "torch.fx._symbolic_trace._assert_is_none") => Ok(()),
            (true, "reshape" | "view") => self.view(id, node),
            (true, "size") => match node.args() {
                [_] => self.same(id, node),
                [_, Arg::Int(index)] => self.get_size(id, node, *index),
                _ => Err(refuse("the dimension of a size is a number".into())),
            },
            (false, "torch.cumsum") => self.cumsum(id, node),
            (false, "operator.getitem") => self.getitem(id, node),
            (false, "operator.gt") => self.compare(id, node, Relation::Gt),
            (false, "operator.lt") => self.compare(id, node, Relation::Lt),
            (false, "operator.eq") => self.compare(id, node, Relation::Eq),
            (false, "operator.ne") => self.not_equal(node),
            (false, "torch.full") => {
                let output = self.type_of(id);
                let Some(Arg::List(items) | Arg::Tuple(items)) = node.args().first() else {
                    return Err(refuse("the size is a list".into()));
                };
                let dims = items.iter().map(|it| self.size(it)).collect::<Result<Vec<_>>>()?;
                self.out.push(Constraint::types(output, &dims));
                Ok(())
            }
            (false, "torch.arange") => self.arange(id, node),
            (false, "operator.mul") => self.arithmetic(id, node, Some(Arithmetic::Mul)),
            (false, "torch.add" | "operator.add") => self.arithmetic(id, node, Some(Arithmetic::Add)),
            (false, "torch.ne") | (true, "ne") => self.arithmetic(id, node, None),
            (false, "torch.flatten") => self.flatten(id, node),
            (false, "torch.reshape") => {
                let output = self.type_of(id);
                let Some(Arg::List(items) | Arg::Tuple(items)) = node.args().get(1) else {
                    return Err(refuse("the shape is a list".into()));
                };
                let dim = |it: &Arg| if *it == Arg::Int(-1) { Ok(DimTerm::Dyn) } else { self.size(it) };
                let target = items.iter().map(dim).collect::<Result<Vec<_>>>()?;
                let src = self.type_arg(node, 0)?;
                self.out.push(Constraint::types(output, &target));
                self.out.push(Constraint::CanReshape { src, target });
                Ok(())
            }
            (true, "dim") => {
                let res = self.dim_of(id);
                let input = self.type_arg(node, 0)?;
                let ranks = (1..=MAX_TENSOR_RANK).map(|rank| {
                    let dims = self.counter.dims(rank);
                    Constraint::Conj(vec![Constraint::types(input, &dims), Constraint::eq(res, rank as i64)])
                });
                let ranks = ranks.collect();
                self.unknown_or([is_dyn(input), Constraint::eq(res, DimTerm::Dyn)], ranks);
                Ok(())
            }
            (_, target) => Err(refuse(format!("No inference rule registered for target {target}!"))),
        }
    }

    fn bmm(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let output = self.type_of(id);
        let (a, b) = (self.type_arg(node, 0)?, self.type_arg(node, 1)?);
        let (x, y) = (self.counter.dims(3), self.counter.dims(3));
        let tensor = |dims: [DimTerm; 3]| TypeTerm::Tensor(dims.into());
        let output_is = |dims| Constraint::types(output, tensor(dims));
        let (a_is, b_is) = (Constraint::types(a, &x), Constraint::types(b, &y));
        let all_dyn = Constraint::Conj(vec![is_dyn(a), is_dyn(b), is_dyn(output)]);
        let a_dyn = Constraint::Conj(vec![is_dyn(a), b_is.clone(), output_is([y[0], DimTerm::Dyn, y[2]])]);
        let b_dyn = Constraint::Conj(vec![is_dyn(b), a_is.clone(), output_is([x[0], x[1], DimTerm::Dyn])]);
        let batch = self.counter.dim();
        let tensors = Constraint::Conj(vec![
            a_is,
            b_is,
            output_is([batch, x[1], y[2]]),
            Constraint::Dim(x[0].into(), Relation::Consistency, y[0].into()),
            Constraint::DGreatestUpperBound { res: batch, rhs: [x[0], y[0]] },
        ]);
        self.out.push(Constraint::Disj(vec![all_dyn, a_dyn, b_dyn, tensors]));
        Ok(())
    }

    fn index_select(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let output = self.type_of(id);
        let dims = self.counter.dims(1);
        let (input, index) = (self.type_arg(node, 0)?, Self::int(node, 1, "dim", None)?);
        let indices = self.type_arg(node, 2)?;
        let select = |dim_replace| {
            let of = |tensor_size| Constraint::IndexSelect { tensor_size, input, dim_replace, index, output };
            Constraint::Disj((1..=MAX_TENSOR_RANK).map(of).collect())
        };
        let known = Constraint::Conj(vec![Constraint::types(indices, &dims), select(dims[0])]);
        let unknown = Constraint::Conj(vec![is_dyn(indices), select(DimTerm::Dyn)]);
        self.out.push(Constraint::Disj(vec![known, unknown]));
        Ok(())
    }

    fn expand(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let shape = self.counter.var();
        let sizes = node.args()[1..].iter().map(|it| self.size(it)).collect::<Result<Vec<_>>>()?;
        self.broadcast(input, shape, output);
        let dims = self.counter.dims(sizes.len());
        self.out.push(Constraint::types(output, &dims));
        self.out.extend(Constraint::naturals(&dims));
        self.out.push(Constraint::types(shape, &sizes));
        let variables: Vec<DimTerm> = sizes.into_iter().filter(|it| matches!(it, DimTerm::Var(_))).collect();
        self.out.extend(Constraint::naturals(&variables));
        Ok(())
    }

    fn equality(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let sizes = match node.args().first() {
            Some(Arg::Node(input)) => match self.symbol(*input)? {
                Symbol::Type(_) => return self.same(id, node),
                Symbol::Dim(_) => node.args(),
            },
            Some(Arg::Tuple(items) | Arg::List(items)) => items,
            _ => return Err(refuse("the size is given as nodes or as one tuple".into())),
        };
        let output = self.type_of(id);
        let dims = sizes.iter().map(|it| self.size(it)).collect::<Result<Vec<_>>>()?;
        if dims.len() > MAX_TENSOR_RANK {
            return Err(refuse(format!("the constraints know tensors of 1 to {MAX_TENSOR_RANK} dimensions")));
        }
        self.out.push(Constraint::types(output, &dims));
        Ok(())
    }

    fn transpose(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let index = [Self::int(node, 1, "dim0", None)?, Self::int(node, 2, "dim1", None)?];
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let of = |tensor_size| Constraint::Transpose { tensor_size, input, index, output };
        self.unknown_or([is_dyn(input), is_dyn(output)], (1..=MAX_TENSOR_RANK).map(of).collect());
        Ok(())
    }

    pub(super) fn embedding(&mut self, id: NodeId, node: &Node, embedding_dim: DimTerm) -> Result<()> {
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let ranks = (1..MAX_TENSOR_RANK).map(|rank| {
            let dims = self.counter.dims(rank);
            let longer = [&dims[..], &[embedding_dim]].concat();
            let mut all = vec![Constraint::types(input, &dims), Constraint::types(output, &longer)];
            all.extend(Constraint::naturals(&dims));
            Constraint::Conj(all)
        });
        let ranks = ranks.collect();
        self.unknown_or([is_dyn(input), is_dyn(output)], ranks);
        Ok(())
    }

    fn view(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let output = self.type_of(id);
        let src = self.type_arg(node, 0)?;
        // Methods take a shape as several arguments, or as one list.
        let sizes = match &node.args()[1..] {
            [Arg::List(items) | Arg::Tuple(items)] => items,
            sizes => sizes,
        };
        let (mut target, mut known) = (Vec::new(), Vec::new());
        for it in sizes {
            let dim = if *it == Arg::Int(-1) { self.counter.dim() } else { self.size(it)? };
            target.push(dim);
            known.push(Constraint::ne(dim, DimTerm::Dyn));
        }
        self.out.push(Constraint::types(output, &target));
        self.out.push(Constraint::CanReshape { src, target });
        self.out.extend(known);
        Ok(())
    }

    /// One dimension of a tensor, or of a size.
    fn get_size(&mut self, id: NodeId, node: &Node, index: i64) -> Result<()> {
        let res = self.dim_of(id);
        let input = self.type_arg(node, 0)?;
        let of = |tensor_size| Constraint::GetItem { tensor_size, index, res, input };
        let any = Constraint::Disj((1..=MAX_TENSOR_RANK).map(of).collect());
        let unknown = Constraint::Conj(vec![is_dyn(input), Constraint::eq(res, DimTerm::Dyn)]);
        let known = Constraint::Conj(vec![any, Constraint::le(0, res)]);
        self.out.push(Constraint::Disj(vec![unknown, known]));
        Ok(())
    }

    fn cumsum(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let dim = Self::int(node, 1, "dim", None)?;
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let ranks = (1..=MAX_TENSOR_RANK).map(|rank| {
            let dims = self.counter.dims(rank);
            let mut all = vec![Constraint::types(input, &dims), Constraint::types(output, &dims)];
            all.push(Constraint::of_bool(place(dim, rank).is_some()));
            all.extend(Constraint::naturals(&dims));
            Constraint::Conj(all)
        });
        let ranks = ranks.collect();
        self.unknown_or([is_dyn(input), is_dyn(output)], ranks);
        Ok(())
    }

    fn getitem(&mut self, id: NodeId, node: &Node) -> Result<()> {
        match node.args().get(1) {
            Some(Arg::Int(index)) => self.get_size(id, node, *index),
            Some(Arg::Tuple(items)) => {
                let full = Arg::Slice(Box::new([Arg::None, Arg::None, Arg::None]));
                let index = items.iter().map(|it| match it {
                    Arg::None => Ok(true),
                    it if *it == full => Ok(false),
                    _ => Err(refuse("of indices only `None` and `:` have a rule".into())),
                });
                let index = index.collect::<Result<Vec<bool>>>()?;
                let res = self.type_of(id);
                let input = self.type_arg(node, 0)?;
                let both = Constraint::Conj(vec![is_dyn(input), is_dyn(res)]);
                let of = |tensor_size| Constraint::GetItemTensor { tensor_size, index: index.clone(), res, input };
                let all = [both].into_iter().chain((1..=MAX_TENSOR_RANK).map(of));
                self.out.push(Constraint::Disj(all.collect()));
                Ok(())
            }
            _ => Err(refuse("an index is a number or a tuple".into())),
        }
    }

    fn compare(&mut self, id: NodeId, node: &Node, relation: Relation) -> Result<()> {
        let left = Self::node_arg(node, 0)?;
        let (a, b) = match (self.symbol(left)?, node.args().get(1)) {
            (Symbol::Type(a), Some(Arg::Node(right))) => match self.symbol(*right)? {
                Symbol::Type(b) => {
                    let output = self.type_of(id);
                    self.broadcast(a, b, output);
                    return Ok(());
                }
                Symbol::Dim(_) => return Err(refuse("a tensor is compared with a size".into())),
            },
            (Symbol::Dim(a), Some(arg)) => (DimTerm::Var(a), self.size(arg)?),
            // What is compared with a number is a size, though it looked like a tensor.
            (Symbol::Type(_), Some(Arg::Int(b))) if relation == Relation::Gt => (self.retype(left), DimTerm::Size(*b)),
            (Symbol::Type(_), _) | (Symbol::Dim(_), None) => return Err(refuse("a tensor is compared".into())),
        };
        let condition = Constraint::Dim(a.into(), relation, b.into());
        let var = self.counter.var();
        self.out.push(Constraint::Bool(var, Box::new(condition)));
        Ok(())
    }

    /// A size is not the one that is written down: they are of another rank, or differ in a dimension that is known.
    fn not_equal(&mut self, node: &Node) -> Result<()> {
        let input = self.type_arg(node, 0)?;
        let Some(Arg::Tuple(items)) = node.args().get(1) else { return Err(refuse("a size is a tuple".into())) };
        if !(3..=4).contains(&items.len()) {
            return Err(refuse("sizes of 3 and 4 dimensions can be compared".into()));
        }
        let dims = &self.counter.dims(4)[..items.len()];
        let differ = items.iter().zip(dims).map(|(it, dim)| {
            let it = self.size(it)?;
            let (known, both) = (Constraint::ne(it, DimTerm::Dyn), Constraint::ne(*dim, DimTerm::Dyn));
            Ok(Constraint::Conj(vec![known, both, Constraint::ne(it, *dim)]))
        });
        let differ = Constraint::Disj(differ.collect::<Result<Vec<_>>>()?);
        let condition = Constraint::Conj(vec![Constraint::types(input, dims), differ]);
        let var = self.counter.var();
        self.out.push(Constraint::Bool(var, Box::new(condition)));
        Ok(())
    }

    fn arange(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let [end] = node.args() else { return Err(refuse("a range with a start has no rule".into())) };
        let end = self.size(end)?;
        let (start, step) = (DimTerm::Size(0), DimTerm::Size(1));
        let dim = self.counter.dim();
        let length = SizeTerm::binary(Arithmetic::Div, SizeTerm::binary(Arithmetic::Sub, end, start), step);
        let output = self.type_of(id);
        let each = |of: fn(DimTerm, DimTerm) -> Constraint| [end, start, step].map(|it| of(it, DimTerm::Dyn)).to_vec();
        let unknown = vec![Constraint::Disj(each(Constraint::eq)), Constraint::eq(dim, DimTerm::Dyn)];
        let known = vec![
            Constraint::Conj(each(Constraint::ne)),
            Constraint::ne(dim, DimTerm::Dyn),
            Constraint::eq(dim, length),
        ];
        self.out.push(Constraint::types(output, &vec![dim]));
        self.out.push(Constraint::Disj(vec![Constraint::Conj(unknown), Constraint::Conj(known)]));
        Ok(())
    }

    fn broadcast(&mut self, a: u32, b: u32, output: u32) {
        let res = [self.counter.var(), self.counter.var()];
        self.out.push(Constraint::TGreatestUpperBound { res: output, rhs: res });
        self.out.push(Constraint::ApplyBroadcasting { res, input: [a, b] });
        self.out.push(Constraint::Type(res[0].into(), Relation::Consistency, res[1].into()));
    }

    fn arithmetic(&mut self, id: NodeId, node: &Node, op: Option<Arithmetic>) -> Result<()> {
        let (operand, number) = match node.args() {
            [Arg::Node(_), Arg::Node(_)] => {
                let (a, b) = (self.type_arg(node, 0)?, self.type_arg(node, 1)?);
                let output = self.type_of(id);
                self.broadcast(a, b, output);
                return Ok(());
            }
            [Arg::Node(it), number] | [number, Arg::Node(it)] if is_number(number) => (*it, number),
            _ => return Err(refuse("the operands are nodes or numbers".into())),
        };
        match (self.symbol(operand)?, op, number) {
            (Symbol::Type(input), _, _) => {
                let output = self.type_of(id);
                self.out.push(Constraint::types(output, input));
            }
            (Symbol::Dim(input), Some(op), Arg::Int(number)) => {
                let output = self.dim_of(id);
                let value = SizeTerm::binary(op, DimTerm::Var(input), *number);
                self.out.push(Constraint::Conj(vec![Constraint::eq(output, value), Constraint::le(0, output)]));
            }
            (Symbol::Dim(_), _, _) => return Err(refuse("of sizes only integer sums and products have a rule".into())),
        }
        Ok(())
    }

    fn flatten(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let (start, end) = (Self::int(node, 1, "start_dim", Some(0))?, Self::int(node, 2, "end_dim", Some(-1))?);
        let flattened = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let mut all = vec![Constraint::Conj(vec![is_dyn(input), is_dyn(flattened)])];
        for rank in 1..=MAX_TENSOR_RANK {
            let dims = self.counter.dims(rank);
            // What is out of range stays out of range: an end before its start.
            let at = |it: i64| usize::try_from(if it < 0 { it + rank as i64 } else { it }).unwrap_or(usize::MAX - 1);
            let mut conj = vec![Constraint::types(input, &dims)];
            let (start, end) = (at(start), at(end) + 1);
            conj.push(Constraint::CalcProduct { start, end, flattened, dims: dims.clone() });
            conj.extend(Constraint::naturals(&dims));
            all.push(Constraint::Conj(conj));
        }
        self.out.push(Constraint::Disj(all));
        Ok(())
    }

    pub(super) fn layer_norm(&mut self, id: NodeId, node: &Node, normalized_shape: &[i64]) -> Result<()> {
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let ranks = (1..=MAX_TENSOR_RANK).map(|rank| {
            let dims = self.counter.dims(rank);
            let mut all = vec![Constraint::types(input, &dims), Constraint::types(output, &dims)];
            if normalized_shape.len() > rank {
                all.push(Constraint::False);
            } else {
                let last = dims.iter().rev().zip(normalized_shape.iter().rev());
                all.extend(
                    last.map(|(dim, size)| Constraint::Dim((*dim).into(), Relation::Consistency, (*size).into())),
                );
            }
            all.extend(Constraint::naturals(&dims));
            Constraint::Conj(all)
        });
        let ranks = ranks.collect();
        self.unknown_or([is_dyn(input), is_dyn(output)], ranks);
        Ok(())
    }

    pub(super) fn linear(
        &mut self,
        id: NodeId,
        node: &Node,
        in_features: DimTerm,
        out_features: DimTerm,
    ) -> Result<()> {
        let output = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        let ranks = (1..=MAX_TENSOR_RANK).map(|rank| {
            let (x, y) = (self.counter.dims(rank), self.counter.dims(rank));
            let mut all = vec![Constraint::types(input, &x), Constraint::types(output, &y)];
            all.extend(x.iter().zip(&y).take(rank - 1).map(|(x, y)| Constraint::eq(*x, *y)));
            all.push(Constraint::Dim(x[rank - 1].into(), Relation::Consistency, in_features.into()));
            all.push(Constraint::eq(y[rank - 1], out_features));
            all.extend(Constraint::naturals(&x));
            all.extend(Constraint::naturals(&y));
            Constraint::Conj(all)
        });
        let ranks = ranks.collect();
        self.unknown_or([is_dyn(input), is_dyn(output)], ranks);
        Ok(())
    }
}
