use crate::resolve::sort_overloads;
use crate::{Op, OpDef, Schema, families};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use tracefx_core::{Code, DType, DTypes, Diagnostic, Result};

/// The dtypes that PyTorch's CPU refuses, by operator, as `tests/oracle/gen_dtypes.py` recorded them.
const REFUSED: &str = include_str!("refused.txt");

/// The operators by name.
#[derive(Debug)]
pub struct Registry {
    ops: FxHashMap<String, Op>,
    /// The overloads of each name without overload, in the order in which PyTorch tries them.
    packets: FxHashMap<String, Vec<String>>,
}

/// The operators that tracefx knows.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::new(families::ALL))
}

impl Registry {
    /// A registry of the operators of these tables.
    ///
    /// # Panics
    /// When a schema does not parse, a name stands twice or a dtype is unknown: the tables are part of the program.
    fn new(tables: &[(&'static str, &'static [OpDef])]) -> Self {
        let mut ops = FxHashMap::default();
        for (family, def) in tables.iter().flat_map(|(family, table)| table.iter().map(move |def| (*family, def))) {
            let schema = Schema::parse(def.schema).unwrap_or_else(|problem| panic!("{problem}"));
            let name = schema.qualified_name();
            let op = Op { def: *def, schema, name: name.clone(), family, refused: DTypes::NONE };
            let is_new = ops.insert(name, op).is_none();
            assert!(is_new, "the schema `{}` stands twice in the registry", def.schema);
        }
        for line in REFUSED.lines() {
            let mut words = line.split(' ');
            if let Some(op) = words.next().and_then(|it| ops.get_mut(it)) {
                op.refused = words.flat_map(dtypes_of).collect();
            }
        }
        let packets = packets(&ops);
        Registry { ops, packets }
    }

    /// The operator of this name: `aten.add.Tensor`, with or without `torch.ops.`.
    pub fn get(&self, name: &str) -> Option<&Op> {
        self.ops.get(name.strip_prefix("torch.ops.").unwrap_or(name))
    }

    /// The operator of this name.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where there is none.
    pub fn require(&self, name: &str) -> Result<&Op> {
        self.get(name).ok_or_else(|| {
            let name = name.strip_prefix("torch.ops.").unwrap_or(name);
            Diagnostic::new(Code::NotImplemented, format!("the operator {name} is not implemented")).op(name)
        })
    }

    /// The overloads of a name such as `aten.add`, in the order in which PyTorch's argument parser tries them, or the one
    /// of a name such as `aten.add.Tensor`.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where there is none.
    pub fn overloads(&self, name: &str) -> Result<Vec<&Op>> {
        match self.packets.get(name.strip_prefix("torch.ops.").unwrap_or(name)) {
            Some(names) => Ok(names.iter().map(|it| &self.ops[it]).collect()),
            None => Ok(vec![self.require(name)?]),
        }
    }

    /// All operators, by name.
    pub fn ops(&self) -> Vec<&Op> {
        let mut res: Vec<&Op> = self.ops.values().collect();
        res.sort_by(|a, b| a.name.cmp(&b.name));
        res
    }
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
        let packet = format!("{}.{}", op.schema.namespace, op.schema.name);
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
