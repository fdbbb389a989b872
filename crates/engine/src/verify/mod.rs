//! Checks what replacements claim, on random inputs: the nodes of a match and what would take their place are both run, and
//! what they give and what they write to their inputs and to attributes is compared.

mod difference;
mod draw;

use crate::Library;
use difference::{Difference, difference};
use draw::{Draw, INT_RANGES};
use tracefx_core::{Code, Diagnostic, Result, Tensor, with_default_generator};
use tracefx_exec::Interpreter;
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::Value;
use tracefx_rewrite::{Claim, RewriteContext, VerifyOptions};

/// One run says little of inputs of few elements, so there are as many runs as it takes to see so many elements, up to…
const MIN_ELEMENTS: usize = 64;

/// …so many.
const MAX_RUNS: usize = 16;

/// How many inputs are drawn before those that the match itself refuses count as all.
const MAX_TRIES: usize = 3 * INT_RANGES.len();

impl Library {
    /// What rewriting needs of this library, kernels included, so that replacements can be verified:
    /// [`VerifyOptions`].
    ///
    /// ```
    /// use tracefx_core::{Code, DType};
    /// use tracefx_engine::Library;
    /// use tracefx_ir::{Graph, GraphModule, TensorMeta, Val};
    /// use tracefx_rewrite::{ReplaceOptions, Replacement, VerifyOptions, replace_pattern_with_filters};
    ///
    /// let calls = |target: &str| {
    ///     let mut graph = Graph::new();
    ///     let x = graph.placeholder("x");
    ///     let meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]);
    ///     graph.meta_mut(x).val = Some(Val::Tensor(meta));
    ///     let call = graph.call_function(target, vec![x.into()], vec![]);
    ///     graph.output(call.into());
    ///     GraphModule::new(graph)
    /// };
    /// let (library, mut module) = (Library::default(), calls("torch.relu"));
    /// let options = ReplaceOptions { verify: Some(VerifyOptions::default()), ..ReplaceOptions::default() };
    /// let replacement = calls("torch.abs");
    /// let refusal = library.rewriting(|cx| {
    ///     let by = Replacement::Module(&replacement);
    ///     replace_pattern_with_filters(&mut module, &calls("torch.relu"), by, &[], cx, &options)
    /// });
    /// assert_eq!(refusal.unwrap_err().code(), Code::VerifyFailed);
    /// ```
    pub fn rewriting<R>(&self, run: impl FnOnce(RewriteContext<'_>) -> R) -> R {
        let verifier = |claim: &Claim, options: &VerifyOptions| verify(self, claim, options);
        run(RewriteContext { registry: self.registry(), verifier: Some(&verifier) })
    }
}

/// Refuses a claim where both sides differ on some random input. The inputs follow from the seed alone, and the generator
/// that random operators draw from is left as it was.
fn verify(library: &Library, claim: &Claim, options: &VerifyOptions) -> Result<()> {
    let state = with_default_generator(|it| it.state());
    let res = runs(library, claim, options);
    with_default_generator(|it| it.set_state(&state)).and(res)
}

fn runs(library: &Library, claim: &Claim, options: &VerifyOptions) -> Result<()> {
    let mut draw = Draw::new(library, options);
    let mut n_elements = 0;
    for run in 0..MAX_RUNS {
        let sample = accepted_sample(&mut draw, claim)?;
        let after = draw.run(&claim.after, &sample.inputs).map_err(|problem| {
            let what = "the replacement refuses inputs that what it replaces takes";
            told(Diagnostic::new(Code::VerifyFailed, what), claim, &sample, options).note(problem.to_string())
        })?;
        if let Some(it) = difference(library, claim, &sample.before, &after)? {
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
        let result = Interpreter::new(&module, self.library().executor()).run(&inputs)?;
        Ok(Outcome { result, inputs, module })
    }
}
