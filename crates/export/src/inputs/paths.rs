//! Where each user input stands in the arguments of `forward`, as guards and messages name it.

use crate::{ExportedProgram, Key, TreeSpec};
use indexmap::IndexMap;
use tracefx_ir::Str;
use tracefx_sym::{InputSource, PathStep};

/// The place of one input: the argument's name, and the way into it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputPath {
    name: Str,
    steps: Vec<Step>,
}

/// One step, in each way in which Python can write it.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    index: i64,
    key: Option<Key>,
    field: Option<Str>,
}

impl InputPath {
    /// An argument that is no container.
    pub(super) fn of_name(name: Str) -> Self {
        InputPath { name, steps: Vec::new() }
    }

    /// Whether a guard means this input.
    pub(super) fn is_source(&self, source: &InputSource) -> bool {
        *self.name == *source.name && self.is_reached(&source.path)
    }

    /// Whether a guard means this input by its place in the `*args` or `**kwargs` of the module, each of which is an argument
    /// of its own in the program: `args_0` for `args[0]`.
    pub(super) fn is_part_of_rest(&self, source: &InputSource) -> bool {
        let Some((first, path)) = source.path.split_first() else { return false };
        let is_named = match first {
            PathStep::Index(at) => *self.name == *format!("{}_{at}", source.name),
            PathStep::Key(key) => *self.name == **key,
            PathStep::Field(_) => false,
        };
        is_named && self.is_reached(path)
    }

    fn is_reached(&self, path: &[PathStep]) -> bool {
        self.steps.len() == path.len()
            && self.steps.iter().zip(path).all(|(step, wanted)| match (wanted, &step.key, &step.field) {
                (PathStep::Key(wanted), Some(Key::Str(key)), _) => *wanted == **key,
                (PathStep::Index(wanted), Some(Key::Int(key)), _) => wanted == key,
                (PathStep::Index(wanted), None, _) => *wanted == step.index,
                (PathStep::Field(wanted), _, Some(field)) => *wanted == **field,
                (PathStep::Key(_) | PathStep::Index(_) | PathStep::Field(_), _, _) => false,
            })
    }
}

impl std::fmt::Display for InputPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        for step in &self.steps {
            match (&step.key, &step.field) {
                (Some(Key::Str(key)), _) => write!(f, "['{}']", key.escape_default())?,
                (Some(Key::Int(key)), _) => write!(f, "[{key}]")?,
                (None, Some(field)) => write!(f, ".{field}")?,
                (None, None) => write!(f, "[{}]", step.index)?,
            }
        }
        Ok(())
    }
}

/// The places of the user inputs, in order. Where the program does not say how its inputs are nested, or says it wrongly,
/// an input is known by the name of its placeholder.
pub(super) fn of_inputs(program: &ExportedProgram) -> Vec<InputPath> {
    let names: Vec<Str> = program.signature.user_inputs().map(|it| it.arg.name().clone()).collect();
    match leaves(program) {
        Some(leaves) if leaves.len() == names.len() => leaves,
        Some(_) | None => names.into_iter().map(InputPath::of_name).collect(),
    }
}

/// The leaves of `(args, kwargs)`.
fn leaves(program: &ExportedProgram) -> Option<Vec<InputPath>> {
    let root = program.in_spec()?;
    let [args, kwargs] = root.children.as_slice() else { return None };
    let names = program.forward_arg_names()?;
    let mut found = Vec::new();
    for (at, arg) in args.children.iter().enumerate() {
        walk(arg, InputPath::of_name(names.get(at)?.clone()), &program.namedtuple_fields, &mut found);
    }
    for (key, arg) in kwargs.keys()?.iter().zip(&kwargs.children) {
        let Key::Str(name) = key else { return None };
        walk(arg, InputPath::of_name(name.clone()), &program.namedtuple_fields, &mut found);
    }
    Some(found)
}

/// The depth is that of the specification, which the reader of a file bounds.
fn walk(spec: &TreeSpec, path: InputPath, namedtuples: &IndexMap<Str, Vec<Str>>, found: &mut Vec<InputPath>) {
    if spec.is_leaf() {
        found.push(path);
        return;
    }
    let keys = spec.keys();
    let named = || spec.context.as_ref().and_then(|it| namedtuples.get(it)).cloned();
    let fields =
        if keys.is_some() { None } else { named().or_else(|| spec.dataclass_fields().map(|(fields, _)| fields)) };
    for (at, child) in spec.children.iter().enumerate() {
        let mut path = path.clone();
        path.steps.push(Step {
            index: at as i64,
            key: keys.as_ref().and_then(|it| it.get(at)).cloned(),
            field: fields.as_ref().and_then(|it| it.get(at)).cloned(),
        });
        walk(child, path, namedtuples, found);
    }
}
