//! Arguments in one form, whichever way a call was written: `torch.fx.operator_schemas` and `torch.fx.experimental.normalize`.

mod annotate;
mod argument_type;
mod operators;
mod overloads;
mod signature;

pub use annotate::{AnnotateOptions, AnnotateTypesWithSchema, annotate_getitem_nodes};
pub use argument_type::ArgumentType;
pub use operators::NormalizeOperators;
pub use overloads::NORMALIZATION_SCHEMAS;

use crate::{Pass, PassResult};
use overloads::{Overload, overloads};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use signature::{Place, Signature, signature_of};
use std::rc::Rc;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::Registry;
use ts_rs::TS;

/// The arguments of a call, with every default there.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    /// The positional arguments.
    pub args: Vec<Arg>,
    /// The keyword arguments, in the order of the parameters.
    pub kwargs: Vec<(Str, Arg)>,
}

/// The arguments of a call as they were written.
#[derive(Clone, Copy, Debug)]
pub struct CallArguments<'a> {
    /// The positional arguments.
    pub args: &'a [Arg],
    /// The keyword arguments.
    pub kwargs: &'a [(Str, Arg)],
}

/// How arguments are normalized.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NormalizeOptions {
    /// Whether all arguments become keyword arguments.
    pub only_kwargs: bool,
    /// The types of the arguments, where overloads must be told apart.
    pub types: Option<ArgumentTypes>,
}

/// The types of the arguments of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentTypes {
    /// Of the positional arguments.
    pub args: Vec<ArgumentType>,
    /// Of the keyword arguments.
    pub kwargs: Vec<(Str, ArgumentType)>,
}

/// Puts arguments in one form. It remembers the parameters of the operators that it met.
///
/// ```
/// use tracefx_ir::{Arg, Graph};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{CallArguments, NormalizeOptions, Normalizer};
///
/// let mut graph = Graph::new();
/// let x = Arg::Node(graph.placeholder("x"));
/// let call = CallArguments { args: &[x.clone()], kwargs: &[] };
/// let mut normalizer = Normalizer::new(registry());
/// let found = normalizer.function("torch.nn.functional.relu", call, &NormalizeOptions::default()).unwrap().unwrap();
/// assert_eq!(found.args, [x]);
/// assert_eq!(found.kwargs, [("inplace".into(), Arg::Bool(false))]);
/// ```
#[derive(Debug)]
pub struct Normalizer<'r> {
    registry: &'r Registry,
    overloads: FxHashMap<Str, Rc<[Overload]>>,
    /// Whether the calls that come out can be made.
    is_callable: bool,
}

impl<'r> Normalizer<'r> {
    /// A normalizer that knows these operators.
    pub fn new(registry: &'r Registry) -> Self {
        Normalizer { registry, overloads: FxHashMap::default(), is_callable: false }
    }

    /// A normalizer after which the calls can be made: it calls the arguments of operators (`torch.ops`) as their schemas do,
    /// where `torch.fx.operator_schemas` calls `self` `input` as well, under which no operator takes it; and it leaves calls
    /// with Python's own values alone, which TorchScript has overloads for but functions of `torch` do not take by name.
    pub fn with_schema_names(registry: &'r Registry) -> Self {
        Normalizer { is_callable: true, ..Normalizer::new(registry) }
    }

    /// The arguments of a call of a function, matched with its parameters, and its defaults:
    /// `torch.fx.operator_schemas.normalize_function`. Nothing where the function is not known, its parameters cannot be
    /// given by name, or no overload takes the arguments.
    ///
    /// # Errors
    /// `SchemaMismatch` where several overloads take the arguments and the types do not say which, and where a function
    /// that is written in Python does not take them.
    pub fn function(
        &mut self,
        target: &str,
        call: CallArguments<'_>,
        options: &NormalizeOptions,
    ) -> Result<Option<Normalized>> {
        if let Some(signature) = signature_of(target) {
            return normalized(signature, target, call, options.only_kwargs);
        }
        let overloads = self.overloads(target);
        let keys = || call.kwargs.iter().map(|(key, _)| &**key);
        let takes = |it: &&Overload| it.signature.places(target, call.args.len(), keys()).is_ok();
        let matching: Vec<&Overload> = overloads.iter().filter(takes).collect();
        let chosen = match (matching.as_slice(), &options.types) {
            ([], _) => None,
            ([only], _) => Some(*only),
            (_, Some(types)) => overloads.iter().find(|it| takes_types(&it.signature, target, types)),
            (several, None) => {
                let what = format!("Tried to normalize arguments to {target} but the schema match was ambiguous!");
                let refusal = Diagnostic::new(Code::SchemaMismatch, what).help("give the types of the arguments");
                return Err(several.iter().fold(refusal, |refusal, it| refusal.note(&*it.text)));
            }
        };
        match chosen {
            Some(it) if it.is_callable_by_name() || !self.is_callable => {
                normalized(&it.signature, target, call, options.only_kwargs)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The arguments of a call of a module, matched with the parameters of its `forward`:
    /// `torch.fx.operator_schemas.normalize_module`. Nothing for a module that is none of `torch.nn`'s.
    ///
    /// # Errors
    /// `AttributeMissing` where there is no such module; `SchemaMismatch` where its `forward` does not take the arguments.
    pub fn module(
        &mut self,
        root: &GraphModule,
        path: &str,
        call: CallArguments<'_>,
        options: &NormalizeOptions,
    ) -> Result<Option<Normalized>> {
        let module = root.submodule(path).map_err(|problem| {
            problem.note(format!("Tried to normalize node with target {path} but root did not have that target!"))
        })?;
        let name = format!("{}.forward", module.class_name);
        match signature_of(&name) {
            Some(signature) if is_leaf(module) => normalized(signature, &name, call, options.only_kwargs),
            Some(_) | None => Ok(None),
        }
    }

    fn overloads(&mut self, target: &str) -> Rc<[Overload]> {
        if let Some(known) = self.overloads.get(target) {
            return Rc::clone(known);
        }
        let this = if self.is_callable && target.starts_with("torch.ops.") { "self" } else { "input" };
        let found: Rc<[Overload]> = overloads(self.registry, target, this).into();
        self.overloads.insert(target.into(), Rc::clone(&found));
        found
    }
}

/// Whether a module has no graph to look into: one of `torch.nn`'s own, as hosts give them.
fn is_leaf(module: &GraphModule) -> bool {
    module.graph.is_empty()
}

fn normalized(
    signature: &Signature,
    name: &str,
    call: CallArguments<'_>,
    only_kwargs: bool,
) -> Result<Option<Normalized>> {
    if !signature.is_named() {
        return Ok(None);
    }
    let places = signature.places(name, call.args.len(), call.kwargs.iter().map(|(key, _)| &**key))?;
    let n_args = if only_kwargs { 0 } else { call.args.len() };
    let mut res = Normalized { args: Vec::new(), kwargs: Vec::new() };
    for (at, (parameter, place)) in signature.parameters.iter().zip(places).enumerate() {
        let value = match place {
            Some(Place::Arg(at)) => call.args[at].clone(),
            Some(Place::Kwarg(at)) => call.kwargs[at].1.clone(),
            None => parameter.default.clone().unwrap_or(Arg::None),
        };
        if at < n_args {
            res.args.push(value);
        } else {
            res.kwargs.push((parameter.name.clone(), value));
        }
    }
    Ok(Some(res))
}

fn takes_types(signature: &Signature, name: &str, ArgumentTypes { args, kwargs }: &ArgumentTypes) -> bool {
    let Ok(places) = signature.places(name, args.len(), kwargs.iter().map(|(key, _)| &**key)) else { return false };
    let fits = |(parameter, place): (&signature::Parameter, Option<Place>)| {
        let ty = match place {
            Some(Place::Arg(at)) => &args[at],
            Some(Place::Kwarg(at)) => &kwargs[at].1,
            // A parameter that is not given keeps its default, of which nothing is asked.
            None => return true,
        };
        parameter.ty.as_ref().is_some_and(|it| ty.fits(it))
    };
    signature.parameters.iter().zip(places).all(fits)
}

/// Gives every call of a function or of a module of `torch.nn` its arguments in one form: by name, in the order of the
/// parameters, with all defaults. `torch.fx.experimental.normalize.NormalizeArgs`, in place.
///
/// Where overloads have to be told apart, the known values of nodes and their annotations do it; a call that stays
/// ambiguous is left as it is. Takes time linear in the number of nodes; a second run changes nothing.
#[derive(Clone, Debug)]
pub struct NormalizeArgs<'r> {
    /// The operators.
    pub registry: &'r Registry,
    /// How arguments are written.
    pub options: NormalizeArgsOptions,
}

/// How [`NormalizeArgs`] writes arguments.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NormalizeArgsOptions {
    /// Whether all arguments become keyword arguments; else those by position stay so.
    pub normalize_to_only_use_kwargs: bool,
}

impl Default for NormalizeArgsOptions {
    fn default() -> Self {
        NormalizeArgsOptions { normalize_to_only_use_kwargs: true }
    }
}

impl NormalizeArgs<'_> {
    fn normalized(
        &self,
        normalizer: &mut Normalizer<'_>,
        module: &GraphModule,
        id: NodeId,
    ) -> Result<Option<Normalized>> {
        let node = module.graph.node(id);
        let call = CallArguments { args: node.args(), kwargs: node.kwargs() };
        let only_kwargs = self.options.normalize_to_only_use_kwargs;
        let target = node.target();
        match node.op() {
            Opcode::CallFunction => {
                let type_of = |it: &Arg| ArgumentType::of(it, &module.graph);
                let args = call.args.iter().map(type_of).collect();
                let kwargs = call.kwargs.iter().map(|(key, it)| (key.clone(), type_of(it))).collect();
                normalizer.function(
                    target,
                    call,
                    &NormalizeOptions { only_kwargs, types: Some(ArgumentTypes { args, kwargs }) },
                )
            }
            Opcode::CallModule => {
                normalizer.module(module, target, call, &NormalizeOptions { only_kwargs, types: None })
            }
            Opcode::Placeholder | Opcode::GetAttr | Opcode::CallMethod | Opcode::Output => Ok(None),
        }
    }
}

impl Pass for NormalizeArgs<'_> {
    fn name(&self) -> &str {
        "NormalizeArgs"
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        let mut normalizer = Normalizer::with_schema_names(self.registry);
        let mut modified = false;
        let nodes: Vec<NodeId> = module.graph.nodes().collect();
        for id in nodes {
            let found = self.normalized(&mut normalizer, module, id);
            let Some(Normalized { args, kwargs }) = found.map_err(|it| it.node(&**module.graph.node(id).name()))?
            else {
                continue;
            };
            let node = module.graph.node(id);
            if node.args() != args || node.kwargs() != kwargs {
                module.graph.set_equal_args(id, args, kwargs)?;
                modified = true;
            }
        }
        if modified {
            module.graph.sort_users();
        }
        Ok(PassResult::new(modified))
    }
}

#[cfg(test)]
mod tests;
