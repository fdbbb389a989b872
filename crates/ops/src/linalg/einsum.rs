//! Einstein summation, as a sequence of products of pairs.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::{Cx, OpDef, TensorRef, Traced, Value};
use tracefx_core::Result;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] =
    &[OpDef::composite("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", einsum)
        .doc("A sum of products over the subscripts that an equation names.")];

/// A subscript: a letter, or a dimension of the ellipsis counted from the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(std::cmp::Reverse<usize>),
    Letter(char),
}

/// The subscripts of one operand or of the result; the ellipsis stands for `n_ellipsis` dimensions.
fn labels(args: &Call<'_>, text: &str, n_ellipsis: usize) -> Result<Vec<Label>> {
    let mut res = Vec::new();
    let mut rest = text;
    let mut has_ellipsis = false;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if has_ellipsis {
                return Err(args.invalid("einsum(): found '.' for which an ellipsis was already found"));
            }
            has_ellipsis = true;
            res.extend((0..n_ellipsis).rev().map(|it| Label::Ellipsis(std::cmp::Reverse(it))));
            rest = after;
        } else if letter.is_ascii_alphabetic() {
            res.push(Label::Letter(letter));
            rest = &rest[1..];
        } else {
            return Err(args.invalid(format!(
                "einsum(): invalid subscript given in the equation: {letter}; subscripts must be in [a-zA-Z]"
            )));
        }
    }
    Ok(res)
}

fn einsum(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let equation: String = args.str(0)?.chars().filter(|it| *it != ' ').collect();
    let operands: Vec<TensorRef> = args.tensors(1)?.into_iter().copied().collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&equation[..], None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if operands.is_empty() || inputs.len() != operands.len() {
        return Err(args.invalid(format!(
            "einsum(): the equation has {} operands but {} were given",
            inputs.len(),
            operands.len()
        )));
    }
    let mut terms = Vec::new();
    let mut n_ellipsis = 0;
    for (text, &operand) in inputs.iter().zip(&operands) {
        let rank = cx.meta(operand).sizes.len();
        let n_letters = text.chars().filter(char::is_ascii_alphabetic).count();
        let n_here = if text.contains("...") { rank.checked_sub(n_letters) } else { Some(0) };
        let labels = labels(args, text, n_here.unwrap_or(0))?;
        if n_here.is_none() || labels.len() != rank {
            return Err(args.invalid(format!(
                "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions \
                 ({rank}) for an operand",
                labels.len()
            )));
        }
        n_ellipsis = n_ellipsis.max(n_here.unwrap_or(0));
        terms.push(labels);
    }
    let kept = match output {
        Some(text) => labels(args, text, n_ellipsis)?,
        None => implied_output(&terms, n_ellipsis),
    };
    let mut all = kept.clone();
    for (at, label) in kept.iter().enumerate() {
        let is_known = matches!(label, Label::Ellipsis(_)) || terms.iter().flatten().any(|it| it == label);
        if kept[..at].contains(label) || !is_known {
            return Err(args.invalid(format!("einsum(): output subscript {label:?} is repeated or of no operand")));
        }
    }
    for label in terms.iter().flatten() {
        if !all.contains(label) {
            all.push(*label);
        }
    }
    let mut aligned = Vec::new();
    for (labels, &operand) in terms.into_iter().zip(&operands) {
        aligned.push(align(cx, args, operand.into(), labels, &all)?);
    }
    check_sizes(cx, args, &aligned)?;
    let result = contract_all(cx, args, aligned, kept.len())?;
    // The summed dimensions, of size one by now, come last.
    let sizes = cx.meta(tensor_of(&result)).sizes[..kept.len()].to_vec();
    let is_done = kept.len() == all.len();
    Ok(vec![if is_done { result } else { cx.aten("reshape", [&result, &size_list(&sizes)])? }])
}

/// Without an arrow, the subscripts that appear once are kept, in alphabetical order, after the ellipsis.
fn implied_output(terms: &[Vec<Label>], n_ellipsis: usize) -> Vec<Label> {
    let mut res: Vec<Label> = (0..n_ellipsis).rev().map(|it| Label::Ellipsis(std::cmp::Reverse(it))).collect();
    let mut letters: Vec<Label> = terms.iter().flatten().copied().filter(|it| matches!(it, Label::Letter(_))).collect();
    letters.sort_unstable();
    let is_single = |it: &&Label| letters.iter().filter(|other| other == it).count() == 1;
    res.extend(letters.iter().filter(is_single));
    res
}

/// The operand with one dimension per subscript, in the order of `all`; of size one where it has none.
fn align(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    mut operand: Traced,
    mut labels: Vec<Label>,
    all: &[Label],
) -> Result<Traced> {
    // A subscript that is there twice means the diagonal, which comes last.
    while let Some((first, second)) =
        (0..labels.len()).find_map(|at| labels[..at].iter().position(|it| *it == labels[at]).map(|it| (it, at)))
    {
        let sizes = &cx.meta(tensor_of(&operand)).sizes;
        if args.differ(&sizes[first], &sizes[second]) {
            return Err(args.bad_shape(format!(
                "einsum(): a subscript is repeated for an operand but the sizes don't match, {} != {}",
                sizes[first], sizes[second]
            )));
        }
        let call = [&operand, &Value::int(0), &Value::int(first as i64), &Value::int(second as i64)];
        operand = cx.aten("diagonal", call)?;
        let label = labels.remove(second);
        labels.remove(first);
        labels.push(label);
    }
    let present: Vec<usize> = all.iter().filter_map(|label| labels.iter().position(|it| it == label)).collect();
    if !present.is_sorted() {
        let order: Vec<i64> = present.iter().map(|&it| it as i64).collect();
        operand = cx.aten("permute", [&operand, &Value::ints(&order)])?;
    }
    for (at, label) in all.iter().enumerate() {
        if !labels.contains(label) {
            operand = cx.aten("unsqueeze", [&operand, &Value::int(at as i64)])?;
        }
    }
    Ok(operand)
}

fn check_sizes(cx: &Cx<'_>, args: &Call<'_>, operands: &[Traced]) -> Result<()> {
    let one = SymInt::from(1);
    let mut seen: Vec<SymInt> = Vec::new();
    for operand in operands {
        let sizes = &cx.meta(tensor_of(operand)).sizes;
        seen.resize(sizes.len(), one.clone());
        for (seen, size) in seen.iter_mut().zip(sizes) {
            if *seen == one {
                *seen = size.clone();
            } else if *size != one && size != seen {
                return Err(args.bad_shape(format!(
                    "einsum(): operands do not broadcast: a subscript has size {size} but was seen with size {seen}"
                )));
            }
        }
    }
    Ok(())
}

/// Multiplies the operands pair by pair, summing over each dimension from `n_kept` on when its last operand is reached.
fn contract_all(cx: &mut Cx<'_>, args: &Call<'_>, mut operands: Vec<Traced>, n_kept: usize) -> Result<Traced> {
    let path = args.opt_ints(2)?;
    let mut steps = path.as_deref().unwrap_or(&[]).chunks(2);
    while operands.len() > 1 {
        let (first, second) = match (&path, steps.next()) {
            (None, _) => (0, 1),
            (Some(_), Some(&[a, b])) if a != b => (a.min(b), a.max(b)),
            (Some(_), _) => return Err(args.invalid("einsum(): the contraction path does not fit the operands")),
        };
        let in_range = first >= 0 && (second as usize) < operands.len();
        if !in_range {
            return Err(args.invalid("einsum(): the contraction path does not fit the operands"));
        }
        let right = operands.remove(second as usize);
        let left = operands.remove(first as usize);
        let sums = last_uses(cx, &operands, n_kept, &left);
        let res = multiply_pair(cx, left, right, &sums)?;
        // Without a path the result takes part in the next product; with one, it goes to the end.
        operands.insert(if path.is_none() { 0 } else { operands.len() }, res);
    }
    let result = operands.remove(0);
    let sums = last_uses(cx, &[], n_kept, &result);
    if sums.is_empty() {
        return Ok(result);
    }
    // As in PyTorch, a sum that is not part of a product makes int64 of ints.
    let dims: Vec<i64> = sums.iter().map(|&it| it as i64).collect();
    cx.aten("sum.dim_IntList", [&result, &Value::ints(&dims), &Value::Bool(true)])
}

/// The dimensions from `n_kept` on that no other operand has.
fn last_uses(cx: &Cx<'_>, others: &[Traced], n_kept: usize, like: &Traced) -> Vec<usize> {
    let rank = cx.meta(tensor_of(like)).sizes.len();
    let is_used = |dim: usize| others.iter().any(|it| cx.meta(tensor_of(it)).sizes[dim] != 1);
    (n_kept..rank).filter(|&dim| !is_used(dim)).collect()
}

fn sum_keeping(cx: &mut Cx<'_>, operand: &Traced, dims: &[usize], dtype: tracefx_core::DType) -> Result<Traced> {
    let dims: Vec<i64> = dims.iter().map(|&it| it as i64).collect();
    let call = [operand, &Value::ints(&dims), &Value::Bool(true)];
    cx.aten_with("sum.dim_IntList", call, &[("dtype", Value::DType(dtype))])
}

/// The product of two operands, summed over some dimensions, which stay with size one. Follows `sumproduct_pair` of
/// aten/src/ATen/native/Linear.cpp.
pub(crate) fn multiply_pair(cx: &mut Cx<'_>, mut left: Traced, mut right: Traced, sums: &[usize]) -> Result<Traced> {
    let dtype = cx.meta(tensor_of(&left)).dtype;
    let sizes = |cx: &Cx<'_>, it: &Traced| cx.meta(tensor_of(it)).sizes.clone();
    let (left_sizes, right_sizes) = (sizes(cx, &left), sizes(cx, &right));
    let (mut both, mut left_only, mut right_only, mut summed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut left_sums, mut right_sums) = (Vec::new(), Vec::new());
    for dim in 0..left_sizes.len() {
        match (sums.contains(&dim), left_sizes[dim] != 1, right_sizes[dim] != 1) {
            (true, true, true) => summed.push(dim),
            (true, true, false) => left_sums.push(dim),
            (true, false, true) => right_sums.push(dim),
            (false, true, true) => both.push(dim),
            (false, true, false) => left_only.push(dim),
            (_, false, _) => right_only.push(dim),
        }
    }
    if !left_sums.is_empty() {
        left = sum_keeping(cx, &left, &left_sums, dtype)?;
    }
    if !right_sums.is_empty() {
        right = sum_keeping(cx, &right, &right_sums, dtype)?;
    }
    if summed.is_empty() {
        return cx.aten("mul.Tensor", [&left, &right]);
    }
    // A dimension that is of size one by now goes with those of the right side.
    right_only.extend(left_sums.iter().chain(&right_sums));
    right_only.sort_unstable();
    right_only.dedup();
    let of = |sizes: &[SymInt], dims: &[usize]| dims.iter().map(|&dim| sizes[dim].clone()).collect::<Vec<_>>();
    let count = |sizes: &[SymInt], dims: &[usize]| of(sizes, dims).iter().product::<SymInt>();
    let n_both = count(&left_sizes, &both);
    let n_summed = count(&left_sizes, &summed);
    let n_left = count(&left_sizes, &left_only);
    let right_now = sizes(cx, &right);
    let n_right = count(&right_now, &right_only);
    let as_batch = |cx: &mut Cx<'_>, it: Traced, order: [&[usize]; 4], sizes: [&SymInt; 3]| {
        let order: Vec<i64> = order.concat().iter().map(|&it| it as i64).collect();
        let it = cx.aten("permute", [&it, &Value::ints(&order)])?;
        cx.aten("reshape", [&it, &size_list(&sizes.map(SymInt::clone))])
    };
    let left = as_batch(cx, left, [&both, &left_only, &summed, &right_only], [&n_both, &n_left, &n_summed])?;
    let right = as_batch(cx, right, [&both, &summed, &right_only, &left_only], [&n_both, &n_summed, &n_right])?;
    let res = cx.aten("bmm", [&left, &right])?;
    let order = [&both[..], &left_only, &summed, &right_only].concat();
    let ones = vec![SymInt::from(1); summed.len()];
    let grouped = [of(&left_sizes, &both), of(&left_sizes, &left_only), ones, of(&right_now, &right_only)].concat();
    let res = cx.aten("reshape", [&res, &size_list(&grouped)])?;
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &dim)| back[dim] = at as i64);
    cx.aten("permute", [&res, &Value::ints(&back)])
}
