//! Checks what replacements claim, on random inputs: the nodes of a match and what would take their place are both run, and
//! what they give and what they write to their inputs and to attributes is compared.

mod difference;
mod draw;

use difference::{Difference, difference};
use draw::{Draw, INT_RANGES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result, Tensor, with_default_generator};
use tracefx_exec::{Executor, Interpreter};
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::Value;
use ts_rs::TS;

/// One run says little of inputs of few elements, so there are as many runs as it takes to see so many elements, up to…
const MIN_ELEMENTS: usize = 64;

/// …so many.
const MAX_RUNS: usize = 16;

/// How many inputs are drawn before those that the match itself refuses count as all.
const MAX_TRIES: usize = 3 * INT_RANGES.len();

/// How replacements are checked on random inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct VerifyOptions {
    /// What the random inputs are made of: the same seed makes the same ones.
    pub seed: u32,
    /// The least and the greatest value of symbols in sizes, by name. Of other symbols it is known that they are positive.
    pub ranges: BTreeMap<String, (i64, i64)>,
}

/// Two modules of the same inputs that are to compute the same: the nodes of a match, and what takes their place there.
///
/// The inputs have their abstract values (`meta.val`). Literals, attributes and the order of arguments are those of the match.
/// Both modules have the attributes of both, but for those that come along with the replacement.
#[derive(Debug)]
pub(crate) struct Claim {
    /// What is there.
    pub(crate) before: GraphModule,
    /// What would take its place.
    pub(crate) after: GraphModule,
}

/// Refuses a claim where both sides differ on some random input. The inputs follow from the seed alone, and the generator
/// that random operators draw from is left as it was.
pub(crate) fn verify(executor: Executor<'_>, claim: &Claim, options: &VerifyOptions) -> Result<()> {
    let state = with_default_generator(|it| it.state());
    let res = runs(executor, claim, options);
    with_default_generator(|it| it.set_state(&state)).and(res)
}

fn runs(executor: Executor<'_>, claim: &Claim, options: &VerifyOptions) -> Result<()> {
    let mut draw = Draw::new(executor, options);
    let mut n_elements = 0;
    for run in 0..MAX_RUNS {
        let sample = accepted_sample(&mut draw, claim)?;
        let after = draw.run(&claim.after, &sample.inputs).map_err(|problem| {
            let what = "the replacement refuses inputs that what it replaces takes";
            told(Diagnostic::new(Code::VerifyFailed, what), claim, &sample, options).note(problem.to_string())
        })?;
        if let Some(it) = difference(executor, claim, &sample.before, &after)? {
            let Difference { what, notes } = it;
            let what = format!("the replacement computes something else: {what}");
            let refusal = told(Diagnostic::new(Code::VerifyFailed, what), claim, &sample, options);
            return Err(notes.into_iter().fold(refusal, Diagnostic::note).note(format!("it is run {run}")));
        }
        sample.inputs.iter().for_each(|it| it.for_each_tensor(&mut |it: &Tensor| n_elements += it.numel()));
        if n_elements >= MIN_ELEMENTS {
            break;
        }
    }
    Ok(())
}

/// What one side gives, and its inputs and attributes as it leaves them.
struct Outcome {
    result: Value<Tensor>,
    inputs: Vec<Value<Tensor>>,
    module: GraphModule,
}

/// Inputs, and what the match makes of them.
struct Sample {
    inputs: Vec<Value<Tensor>>,
    before: Outcome,
}

/// Random inputs that the match takes. Ints may be indices, and sizes may have to fit each other, so that not all will do.
fn accepted_sample(draw: &mut Draw<'_>, claim: &Claim) -> Result<Sample> {
    let mut refusal = None;
    for attempt in 0..MAX_TRIES {
        draw.begin(INT_RANGES[attempt % INT_RANGES.len()]);
        let inputs = draw.inputs(&claim.before)?;
        match draw.run(&claim.before, &inputs) {
            Ok(before) => return Ok(Sample { inputs, before }),
            Err(problem) => refusal = Some(problem),
        }
        if refusal.as_ref().is_some_and(|it| it.code() == Code::NotImplemented) {
            break;
        }
    }
    let refusal = refusal.expect("there was a try");
    Err(Diagnostic::new(Code::VerifyFailed, "the match cannot be run on random inputs, so nothing is verified")
        .note(refusal.to_string())
        .help("say the ranges of symbols in `verify`, or leave this rule unverified"))
}

/// Says with which inputs a claim was refused.
fn told(refusal: Diagnostic, claim: &Claim, sample: &Sample, options: &VerifyOptions) -> Diagnostic {
    let inputs: Vec<String> = names(&claim.before).zip(&sample.inputs).map(|(it, value)| describe(it, value)).collect();
    refusal
        .note(format!("the inputs are {}, made with seed {}", inputs.join(", "), options.seed))
        .help("mend the replacement, or let a constraint or filter keep the rule from this match")
}

fn names(module: &GraphModule) -> impl Iterator<Item = &str> {
    let nodes = module.graph.nodes().map(|it| module.graph.node(it));
    nodes.filter(|it| it.op() == Opcode::Placeholder).map(|it| &**it.target())
}

fn describe(name: &str, value: &Value<Tensor>) -> String {
    match (value, value.as_scalar()) {
        (Value::Tensor(it), _) => format!("%{name} {}{:?}", it.dtype().short_name(), it.sizes()),
        (_, Some(it)) => format!("%{name} {it}"),
        (it, None) => format!("%{name} a {}", it.kind_name()),
    }
}

impl Draw<'_> {
    /// Runs one side on copies of the inputs and of what the module holds.
    fn run(&mut self, module: &GraphModule, inputs: &[Value<Tensor>]) -> Result<Outcome> {
        let module = self.owned(module)?;
        let inputs = inputs.iter().map(|it| it.try_map(&mut draw::copy)).collect::<Result<Vec<_>>>()?;
        with_default_generator(|it| it.manual_seed(u64::from(self.seed())));
        let result = Interpreter::new(&module, self.executor()).run(&inputs)?;
        Ok(Outcome { result, inputs, module })
    }
}
