//! Types of values, and constraints on them.

use super::{Declare, HostPass, PassCall, answer, declared};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::NodeId;
use tracefx_sym::{Parser, SymBool, Symbol as SizeSymbol, ValueRange};
use tracefx_types::{
    ConstraintGenerator, DEFAULT_BUDGET, GraphTypeChecker, ModuleSpec, Modules, Problem, SmtLib, Symbol,
    TranslationValidator, Type, Validation, Verdict, Window, bisect, evaluate_conditional_with_constraints,
    infer_symbolic_types, infer_symbolic_types_single_pass,
};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass {
        name: "type_check",
        run: |call| {
            let options: TypeOptions = call.options()?;
            GraphTypeChecker::new(&options.modules).type_check(call.module)?;
            Ok(json!({}))
        },
    },
    HostPass {
        name: "infer_symbolic_types",
        run: |call| {
            let options: InferOptions = call.options()?;
            if options.single_pass {
                infer_symbolic_types_single_pass(call.module, &options.modules)?;
            } else {
                infer_symbolic_types(call.module, &options.modules)?;
            }
            Ok(json!({}))
        },
    },
    HostPass { name: "transform_all_constraints", run: transform_all_constraints },
    HostPass { name: "evaluate_conditional_with_constraints", run: evaluate_conditional },
    HostPass { name: "validate_guards", run: validate_guards },
    HostPass { name: "bisect_guards", run: bisect_guards },
];

pub(super) const TYPES: &[Declare] = &[
    declared::<Window>,
    declared::<ModuleSpec>,
    declared::<TypeOptions>,
    declared::<InferOptions>,
    declared::<ConstraintOptions>,
    declared::<ConditionOptions>,
    declared::<SolverAnswer>,
    declared::<ConstraintAnswer>,
    declared::<ConditionAnswer>,
    declared::<GuardOptions>,
    declared::<GuardAnswer>,
    declared::<BisectAnswer>,
];

/// What the checker of types is told.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TypeOptions {
    /// The modules of the graph by their paths.
    modules: Modules,
}

/// What the inference of types is told.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct InferOptions {
    /// The modules of the graph by their paths.
    modules: Modules,
    /// Whether it stops after one pass.
    single_pass: bool,
}

/// What the generator of constraints is told.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConstraintOptions {
    /// The modules of the graph by their paths.
    modules: Modules,
    /// Types that nodes are to have, by their places.
    require: Vec<(usize, String)>,
    /// How many steps the solver takes.
    budget: Option<u32>,
    /// What another solver printed for the problem, where the own one does not know.
    answer: Option<String>,
}

/// Which condition is looked at.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConditionOptions {
    /// The modules of the graph by their paths.
    modules: Modules,
    /// The place of the node that is the condition.
    node: usize,
}

/// What the solver says of a problem.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SolverAnswer {
    /// The problem as SMT-LIB 2.
    smt_lib: String,
    /// Whether it can be solved.
    #[ts(type = "\"sat\" | \"unsat\" | \"unknown\"")]
    verdict: &'static str,
    /// Why nothing is known.
    reason: Option<String>,
    /// Values of the integer variables.
    ints: BTreeMap<String, i64>,
    /// Values of the type variables.
    types: BTreeMap<String, String>,
}

/// The constraints of a graph, and what the solver says of them.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct ConstraintAnswer {
    /// The constraints as they were generated.
    generated: String,
    /// The constraints as they were transformed.
    transformed: String,
    /// The variable of each node, by its place.
    variables: Vec<Option<String>>,
    /// What the solver says.
    answer: SolverAnswer,
}

/// Whether a condition can hold, and whether it can fail.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct ConditionAnswer {
    /// Whether it can hold.
    condition: SolverAnswer,
    /// Whether it can fail.
    negation: SolverAnswer,
}

/// Guards, written as expressions of symbols.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GuardOptions {
    /// The ranges of the symbols.
    #[ts(type = "Record<string, readonly [number | null, number | null]>")]
    ranges: BTreeMap<String, (Option<i64>, Option<i64>)>,
    /// What is asked for.
    source: Vec<String>,
    /// What is checked.
    target: Vec<String>,
    /// What holds anyway.
    assertions: Vec<String>,
    /// For each of what is asked for, how many of the targets were there when it was added.
    known: Vec<usize>,
    /// What another solver printed for the question, where the own one does not know.
    answer: Option<String>,
}

/// Whether guards say what they should.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct GuardAnswer {
    /// Whether they do.
    #[ts(type = "\"valid\" | \"unknown\"")]
    validation: &'static str,
    /// Why nothing is known.
    reason: Option<String>,
    /// The question as SMT-LIB 2: it cannot be solved where the guards are valid.
    smt_lib: String,
}

/// The first of what is asked for that does not follow.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct BisectAnswer {
    /// Its place; nothing where all of it follows.
    at: Option<usize>,
    /// What was found there.
    notes: Vec<String>,
}

fn solved(problem: &Problem, budget: Option<u32>, answer: Option<&str>) -> SolverAnswer {
    let smt_lib = problem.to_smt_lib();
    let nothing = |verdict, reason| SolverAnswer {
        smt_lib: smt_lib.clone(),
        verdict,
        reason,
        ints: BTreeMap::new(),
        types: BTreeMap::new(),
    };
    let verdict = match (problem.solve_within(budget.unwrap_or(DEFAULT_BUDGET)), answer) {
        (Verdict::Unknown(_), Some(answer)) => Verdict::of_smt_lib(answer),
        (known, _) => known,
    };
    match verdict {
        Verdict::Unsat => nothing("unsat", None),
        Verdict::Unknown(reason) => nothing("unknown", Some(reason)),
        Verdict::Sat(model) => SolverAnswer {
            ints: model.ints,
            types: model.types.into_iter().map(|(name, ty)| (name, ty.to_string())).collect(),
            ..nothing("sat", None)
        },
    }
}

fn node_at(call: &PassCall<'_>, place: usize) -> Result<NodeId> {
    let missing = || Diagnostic::new(Code::InvalidOption, format!("there is no node at place {place}"));
    call.nodes().get(place).copied().ok_or_else(missing)
}

fn transform_all_constraints(call: &mut PassCall<'_>) -> Result<Value> {
    let options: ConstraintOptions = call.options()?;
    let generated = ConstraintGenerator::new(call.module, &options.modules).generate()?;
    let text = generated.constraint.to_string();
    let mut constraints = generated.transformed()?;
    for (place, ty) in &options.require {
        constraints.require(node_at(call, *place)?, &ty.parse::<Type>()?)?;
    }
    let name = |id: &NodeId| match constraints.symbol(*id)? {
        Symbol::Type(var) => Some(format!("t{var}")),
        Symbol::Dim(var) => Some(format!("d{var}")),
    };
    answer(&ConstraintAnswer {
        generated: text,
        transformed: constraints.constraint.to_string(),
        variables: call.nodes().iter().map(name).collect(),
        answer: solved(&constraints.problem()?, options.budget, options.answer.as_deref()),
    })
}

fn evaluate_conditional(call: &mut PassCall<'_>) -> Result<Value> {
    let options: ConditionOptions = call.options()?;
    let node = node_at(call, options.node)?;
    let [condition, negation] = evaluate_conditional_with_constraints(call.module, &options.modules, node)?;
    answer(&ConditionAnswer { condition: solved(&condition, None, None), negation: solved(&negation, None, None) })
}

/// The validator of these ranges and assertions, and what is asked for and checked.
fn guards_of(options: &GuardOptions) -> Result<(TranslationValidator, Vec<SymBool>, Vec<SymBool>)> {
    let (mut parser, mut validator) = (Parser::default(), TranslationValidator::default());
    for (name, (min, max)) in &options.ranges {
        validator.add_var(&SizeSymbol::integer(name.as_str()), ValueRange { min: *min, max: *max });
    }
    let mut read = |texts: &[String]| texts.iter().map(|it| parser.parse_bool(it)).collect::<Result<Vec<_>>>();
    for it in read(&options.assertions)? {
        validator.add_assertion(it)?;
    }
    let (source, target) = (read(&options.source)?, read(&options.target)?);
    Ok((validator, source, target))
}

fn validate_guards(call: &mut PassCall<'_>) -> Result<Value> {
    let options: GuardOptions = call.options()?;
    let (mut validator, source, target) = guards_of(&options)?;
    source.into_iter().try_for_each(|it| validator.add_source_expr(it))?;
    target.into_iter().try_for_each(|it| validator.add_target_expr(it))?;
    let validation = match &options.answer {
        Some(answer) => validator.validate_with(&SmtLib(|_: &str| Ok(answer.clone())))?,
        None => validator.validate()?,
    };
    let (validation, reason) = match validation {
        Validation::Valid => ("valid", None),
        Validation::Unknown(reason) => ("unknown", Some(reason)),
    };
    answer(&GuardAnswer { validation, reason, smt_lib: validator.problem().to_smt_lib() })
}

fn bisect_guards(call: &mut PassCall<'_>) -> Result<Value> {
    let options: GuardOptions = call.options()?;
    let (mut validator, source, target) = guards_of(&options)?;
    let known = |at: usize| options.known.get(at).copied().unwrap_or(target.len()).min(target.len());
    target[..known(0)].iter().try_for_each(|it| validator.add_target_expr(it.clone()))?;
    let mut guards = Vec::with_capacity(source.len());
    for (at, it) in source.into_iter().enumerate() {
        // What is checked from here on, until something else is asked for.
        let since = target.get(known(at)..known(at + 1)).unwrap_or_default();
        guards.push((it, since.iter().cloned().fold(SymBool::from(true), SymBool::and)));
    }
    let found = bisect(&validator, &guards)?;
    let (at, notes) = found.map(|(at, failure)| (at, failure.notes().to_vec())).unzip();
    answer(&BisectAnswer { at, notes: notes.unwrap_or_default() })
}
