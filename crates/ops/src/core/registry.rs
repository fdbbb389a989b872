//! The operators by name: those of the tables, and those that are defined in a copy.

use crate::core::resolve::sort_overloads;
use crate::{CustomOp, Infer, Op, OpDef, Schema, Tags};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};
use tracefx_core::{Code, DType, DTypes, Diagnostic, Result};

/// The dtypes that PyTorch's CPU refuses, by operator, as `tests/oracle/gen_dtypes.py` and `gen_refused.py` recorded them; after
/// the `/` those that it refuses where there is nothing to compute, too.
const REFUSED: &str = include_str!("refused.txt");

/// The operators by name. A clone shares them with the original until one of both defines another.
#[derive(Clone, Debug)]
pub struct Registry {
    ops: Arc<FxHashMap<String, Arc<Op>>>,
    /// The overloads of each name without overload, in the order in which PyTorch tries them.
    packets: Arc<FxHashMap<String, Vec<String>>>,
}

/// The operators that tracefx knows.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::new(&crate::DOMAINS.concat()))
}

impl Registry {
    /// A registry of the operators of these tables.
    ///
    /// # Panics
    /// When a schema does not parse, a name stands twice or a dtype is unknown: the tables are part of the program.
    fn new(tables: &[(&'static str, &'static [OpDef])]) -> Self {
        let mut ops = FxHashMap::default();
        let mut put = |family, def: OpDef| {
            let schema = Schema::parse(def.schema).unwrap_or_else(|problem| panic!("{problem}"));
            let name = schema.qualified_name();
            let (refused, refused_empty) = (DTypes::NONE, DTypes::NONE);
            let op = Op { def, schema, name: name.clone(), family, refused, refused_empty, custom: None };
            let is_new = ops.insert(name.clone(), op).is_none();
            assert!(is_new, "the schema `{}` stands twice in the registry", def.schema);
            name
        };
        for (family, def) in tables.iter().flat_map(|(family, table)| table.iter().map(move |def| (*family, def))) {
            let functional = put(family, *def);
            for name in def.in_place {
                put(family, def.in_place_row(&functional, name));
            }
        }
        for line in REFUSED.lines() {
            let (line, empty) = line.split_once(" / ").unwrap_or((line, ""));
            let mut words = line.split(' ');
            if let Some(op) = words.next().and_then(|it| ops.get_mut(it)) {
                op.refused = words.flat_map(dtypes_of).collect();
                op.refused_empty = empty.split_terminator(' ').flat_map(dtypes_of).collect();
            }
        }
        let packets = packets(&ops);
        let ops = ops.into_iter().map(|(name, op)| (name, Arc::new(op))).collect();
        Registry { ops: Arc::new(ops), packets: Arc::new(packets) }
    }

    /// A registry of operators by their schemas and properties alone: enough to call their kernels, and not to infer shapes, to
    /// decompose or to differentiate.
    ///
    /// ```
    /// use tracefx_ops::{Registry, Tags};
    /// let ops = Registry::of_calls([("aten::relu(Tensor self) -> Tensor", Tags::POINTWISE)])?;
    /// assert!(ops.get("aten.relu.default").is_some_and(|it| it.def.tags.has(Tags::POINTWISE)));
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `SchemaMismatch` where a schema does not parse.
    pub fn of_calls<'a>(rows: impl IntoIterator<Item = (&'a str, Tags)>) -> Result<Self> {
        let mut ops = FxHashMap::default();
        for (schema, tags) in rows {
            let schema = Schema::parse(schema)?;
            let def = OpDef::inferred("", Infer::Composite).tags(tags);
            let (name, refused) = (schema.qualified_name(), DTypes::NONE);
            let op = Op { def, schema, name: name.clone(), family: "", refused, refused_empty: refused, custom: None };
            ops.insert(name, Arc::new(op));
        }
        Ok(Registry { ops: Arc::new(ops), packets: Arc::default() })
    }

    /// Puts in an operator of one's own.
    ///
    /// # Errors
    /// `InvalidOption` where there is an operator of this name and overload already.
    pub fn define(&mut self, op: CustomOp) -> Result<()> {
        let op = op.into_op();
        if let Some(other) = self.ops.get(&op.name) {
            let what = format!(
                "Tried to register an operator ({}) with the same name and overload name multiple times",
                op.schema
            );
            return Err(Diagnostic::new(Code::InvalidOption, what)
                .op(&*op.name)
                .note(format!("it was defined as {}", other.schema))
                .help("give one of them another name or another overload name"));
        }
        let packet = packet_of(&op);
        Arc::make_mut(&mut self.ops).insert(op.name.clone(), Arc::new(op));
        self.sort_packet(packet);
        Ok(())
    }

    /// Takes out an operator of one's own, and gives back whether there was one of this name.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(op) = self.get(name).filter(|it| it.is_custom()) else { return false };
        let (name, packet) = (op.name.clone(), packet_of(op));
        Arc::make_mut(&mut self.ops).remove(&name);
        self.sort_packet(packet);
        true
    }

    /// Brings the overloads of a name up to date.
    fn sort_packet(&mut self, packet: String) {
        let Some((namespace, name)) = packet.split_once('.') else { return };
        let is_of = |it: &&Op| {
            it.schema.name == name && it.schema.namespace == namespace && (it.is_custom() || !it.writes_out())
        };
        let mut overloads: Vec<&Op> = self.ops.values().map(|it| &**it).filter(is_of).collect();
        sort_overloads(&mut overloads);
        let names: Vec<String> = overloads.iter().map(|it| it.name.clone()).collect();
        let packets = Arc::make_mut(&mut self.packets);
        if names.is_empty() {
            packets.remove(&packet)
        } else {
            packets.insert(packet, names)
        };
    }

    /// The operator of this name: `aten.add.Tensor`, with or without `torch.ops.`.
    pub fn get(&self, name: &str) -> Option<&Op> {
        self.ops.get(name.strip_prefix("torch.ops.").unwrap_or(name)).map(|it| &**it)
    }

    /// The operator of this name.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where there is none.
    pub fn require(&self, name: &str) -> Result<&Op> {
        self.get(name).ok_or_else(|| {
            let name = name.strip_prefix("torch.ops.").unwrap_or(name);
            let refusal =
                Diagnostic::new(Code::NotImplemented, format!("the operator {name} is not implemented")).op(name);
            if name.starts_with("aten.") {
                return refusal;
            }
            refusal
                .help("if it is an operator of your own, define it first: torch.library in TypeScript, Library in Rust")
        })
    }

    /// The operator of this name, for whoever keeps it.
    ///
    /// # Errors
    /// As [`Registry::require`].
    pub fn shared(&self, name: &str) -> Result<Arc<Op>> {
        let op = self.require(name)?;
        Ok(Arc::clone(&self.ops[&op.name]))
    }

    /// The overloads of a name such as `aten.add`, in the order in which PyTorch's argument parser tries them, or the one
    /// of a name such as `aten.add.Tensor`.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where there is none.
    pub fn overloads(&self, name: &str) -> Result<Vec<&Op>> {
        match self.packets.get(name.strip_prefix("torch.ops.").unwrap_or(name)) {
            Some(names) => Ok(names.iter().map(|it| &*self.ops[it]).collect()),
            None => Ok(vec![self.require(name)?]),
        }
    }

    /// All operators, by name.
    pub fn ops(&self) -> Vec<&Op> {
        let mut res: Vec<&Op> = self.ops.values().map(|it| &**it).collect();
        res.sort_by(|a, b| a.name.cmp(&b.name));
        res
    }
}

impl PartialEq for Registry {
    /// Whether these are the same operators, and not others of the same names.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ops, &other.ops)
    }
}

impl Eq for Registry {}

/// The name of an operator without its overload, such as `aten.add`.
fn packet_of(op: &Op) -> String {
    format!("{}.{}", op.schema.namespace, op.schema.name)
}

/// The dtypes of a word of the table: one, or a group of them.
fn dtypes_of(word: &str) -> Vec<DType> {
    match word {
        "ints" => vec![DType::Int8, DType::Int16, DType::Int32, DType::Int64, DType::UInt8],
        "halves" => vec![DType::Float16, DType::BFloat16],
        "complex" => vec![DType::Complex64, DType::Complex128],
        name => vec![DType::from_name(name).unwrap_or_else(|| panic!("{name} is no dtype"))],
    }
}

fn packets(ops: &FxHashMap<String, Op>) -> FxHashMap<String, Vec<String>> {
    let mut packets: FxHashMap<String, Vec<&Op>> = FxHashMap::default();
    // Python's functions take `out` for whichever overload fits the other arguments.
    for op in ops.values().filter(|it| !it.writes_out()) {
        let packet = packet_of(op);
        if packet != op.name {
            packets.entry(packet).or_default().push(op);
        }
    }
    let sorted = |(packet, mut overloads): (String, Vec<&Op>)| {
        sort_overloads(&mut overloads);
        (packet, overloads.iter().map(|it| it.name.clone()).collect())
    };
    packets.into_iter().map(sorted).collect()
}
