//! The primary module and the deferred ones.

use crate::Refusal;
use crate::encoding::Renumbered;
use crate::source::{Segment, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ElementSection, Elements, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, ImportSection, Module, RawSection, SectionId, StartSection,
    TableSection, TableType, ValType,
};
use wasmparser::{ExternalKind, Operator};

/// The export that a stub calls with the number of its part while that is not there. It returns when it is, or throws.
pub const LOADER: &str = "load_part";

/// The name of the module that parts import from.
pub const PRIMARY: &str = "primary";

/// What a module was split into.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The module that is instantiated.
    pub primary: Vec<u8>,
    /// The modules that are instantiated with the exports of the primary one; the first is part 1.
    pub deferred: Vec<Vec<u8>>,
    /// How many stubs the primary module has.
    pub stubs: usize,
}

/// Splits a module into the primary one, which is part 0, and `deferred` parts. `part_of` says the part of each function, by its number among those
/// that the module defines.
///
/// # Errors
/// As of [`Refusal`].
///
/// # Panics
/// Where `part_of` says a part that there is not.
pub fn split(module: &[u8], deferred: usize, part_of: impl Fn(usize) -> usize) -> Result<Parts, Refusal> {
    let source = Source::read(module)?;
    let mut hasher = DefaultHasher::new();
    module.hash(&mut hasher);
    let plan = Plan::of(&source, hasher.finish(), deferred, part_of)?;
    let deferred = (1..=deferred).map(|part| plan.deferred(&source, part)).collect::<Result<_, _>>()?;
    Ok(Parts { primary: plan.primary(&source)?, deferred, stubs: plan.stubs.len() })
}

/// What becomes of the functions of a module. All are named by their index in it.
struct Plan {
    signatures: Vec<u32>,
    /// How many are imported; they come first.
    imported: usize,
    /// The part of each.
    parts: Vec<usize>,
    /// Deferred functions that other parts refer to, in order, with their slots in the table.
    stubs: BTreeMap<u32, u32>,
    /// What each part calls of others.
    shared: Vec<BTreeSet<u32>>,
    /// The names under which the primary module exports these.
    names: BTreeMap<u32, String>,
    loader: u32,
    /// The table of functions.
    table: usize,
    /// How many slots it has with those of the stubs.
    slots: u32,
    /// How many globals the module has. The flags of the parts come behind: whether each is there.
    globals: usize,
    /// A hash of the module that was split.
    build: u64,
}

impl Plan {
    fn of(source: &Source<'_>, build: u64, deferred: usize, part_of: impl Fn(usize) -> usize) -> Result<Self, Refusal> {
        if source.exports.iter().any(|it| it.name.starts_with('$')) {
            return Err(Refusal::Unsupported("an export whose name begins with `$`"));
        }
        let signatures = source.signatures();
        let imported = source.imported.len();
        let loader = loader(source, &signatures)?;
        let mut parts: Vec<usize> =
            (0..signatures.len()).map(|it| it.checked_sub(imported).map_or(0, &part_of)).collect();
        parts[loader as usize] = 0;
        assert!(parts.iter().all(|it| *it <= deferred), "there are {deferred} deferred parts");

        let mut named: BTreeSet<u32> = source.segments.iter().flat_map(|it| it.functions.iter().copied()).collect();
        named.extend(source.exports.iter().filter(|it| it.kind == ExternalKind::Func).map(|it| it.index));
        let mut shared = vec![BTreeSet::new(); deferred + 1];
        for (body, part) in source.bodies.iter().zip(&parts[imported..]) {
            for operator in body.get_operators_reader()? {
                match operator? {
                    Operator::Call { function_index } | Operator::ReturnCall { function_index }
                        if parts.get(function_index as usize).is_some_and(|it| it != part) =>
                    {
                        named.insert(function_index);
                        shared[*part].insert(function_index);
                    }
                    Operator::RefFunc { .. } => return Err(Refusal::Unsupported("a reference of a function in code")),
                    Operator::MemoryInit { .. } | Operator::DataDrop { .. } if *part != 0 => {
                        return Err(Refusal::Unsupported("a deferred function that reads a segment of data"));
                    }
                    _ => {}
                }
            }
        }

        let tables: BTreeSet<u32> = source.segments.iter().map(|it| it.table).collect();
        let Some(table) = tables.first().copied().filter(|_| tables.len() == 1) else {
            return Err(Refusal::Unsupported("not one table of functions"));
        };
        let slot_of: HashMap<u32, u32> =
            source.segments.iter().flat_map(Segment::slots).map(|(slot, it)| (it, slot)).collect();
        let of_table = source.tables.get(table as usize).ok_or(Refusal::Unsupported("a segment of no table"))?;
        let mut slots = u32::try_from(of_table.initial).map_err(|_| Refusal::Unsupported("a table of 64 bits"))?;
        let mut stubs = BTreeMap::new();
        for function in named.into_iter().filter(|it| parts.get(*it as usize).is_some_and(|part| *part != 0)) {
            let slot = slot_of.get(&function).copied().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            stubs.insert(function, slot);
        }
        let called: BTreeSet<u32> = shared.iter().skip(1).flatten().copied().collect();
        let names = called.into_iter().zip(0..).map(|(function, number)| (function, format!("${number}"))).collect();
        let globals = source.globals.len();
        Ok(Plan {
            signatures,
            imported,
            parts,
            stubs,
            shared,
            names,
            loader,
            table: table as usize,
            slots,
            globals,
            build,
        })
    }

    /// How many parts are deferred.
    fn deferred_parts(&self) -> usize {
        self.shared.len() - 1
    }

    /// The functions that are defined, by their index.
    fn defined(&self) -> impl Iterator<Item = u32> {
        index(self.imported)..index(self.signatures.len())
    }

    fn part(&self, function: u32) -> usize {
        self.parts[function as usize]
    }

    /// The global that is 1 once a part is there.
    fn flag(&self, part: usize) -> u32 {
        index(self.globals + part - 1)
    }

    /// The tables of the primary module.
    fn tables(&self, source: &Source<'_>) -> Result<Vec<TableType>, Refusal> {
        let mut res = Vec::new();
        for (number, table) in source.tables.iter().enumerate() {
            let mut table = Renumbered::default().table_type(*table)?;
            if number == self.table {
                let more = u64::from(self.slots) - table.minimum;
                table.minimum += more;
                table.maximum = table.maximum.map(|it| it + more);
            }
            res.push(table);
        }
        Ok(res)
    }

    fn primary(&self, source: &Source<'_>) -> Result<Vec<u8>, Refusal> {
        let kept: Vec<u32> = self.defined().filter(|it| self.part(*it) == 0).collect();
        // Stubs that are alike stand side by side, which compresses well.
        let mut stubs: Vec<(u32, u32)> = self.stubs.iter().map(|(function, slot)| (*function, *slot)).collect();
        stubs.sort_by_key(|(function, slot)| (self.part(*function), self.signatures[*function as usize], *slot));
        let present = kept.iter().copied().chain(stubs.iter().map(|it| it.0));
        let mut encoder = Renumbered::of((0..index(self.imported)).chain(present));

        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        for function in kept {
            functions.function(self.signatures[function as usize]);
            encoder.parse_function_body(&mut code, source.bodies[function as usize - self.imported].clone())?;
        }
        for (function, slot) in stubs {
            functions.function(self.signatures[function as usize]);
            code.function(&self.stub(source, function, slot, encoder.function_index(self.loader)?));
        }

        let mut tables = TableSection::new();
        for table in self.tables(source)? {
            tables.table(table);
        }
        let mut globals = GlobalSection::new();
        for global in &source.globals {
            encoder.parse_global(&mut globals, global.clone())?;
        }
        for _ in 0..self.deferred_parts() {
            globals.global(FLAG, &ConstExpr::i32_const(0));
        }
        let mut exports = ExportSection::new();
        for export in &source.exports {
            encoder.parse_export(&mut exports, *export)?;
        }
        for (name, kind, number, _) in self.entities(source)? {
            exports.export(&name, kind, number);
        }
        for (function, name) in &self.names {
            exports.export(name, ExportKind::Func, encoder.function_index(*function)?);
        }
        let mut elements = ElementSection::new();
        for segment in &source.segments {
            self.append(&mut elements, &mut encoder, segment.first, segment.functions.iter().copied())?;
        }
        Ok(source.with(&[&functions, &tables, &globals, &exports, &elements, &code]))
    }

    /// Gives the slots of the table from `first` on to functions.
    fn append(
        &self,
        elements: &mut ElementSection,
        encoder: &mut Renumbered,
        first: u32,
        functions: impl Iterator<Item = u32>,
    ) -> Result<(), Refusal> {
        let functions: Vec<u32> = functions.map(|it| encoder.function_index(it)).collect::<Result<_, _>>()?;
        let table = Some(index(self.table)).filter(|it| *it != 0);
        elements.active(table, &ConstExpr::i32_const(first.cast_signed()), Elements::Functions(functions.into()));
        Ok(())
    }

    /// A function that calls the deferred one in a slot, when it is there.
    fn stub(&self, source: &Source<'_>, function: u32, slot: u32, loader: u32) -> Function {
        let (part, signature) = (self.part(function), self.signatures[function as usize]);
        let mut res = Function::new([]);
        let mut code = res.instructions();
        code.global_get(self.flag(part)).i32_eqz().if_(BlockType::Empty);
        code.i32_const(index(part).cast_signed()).call(loader).end();
        for parameter in 0..source.types[signature as usize].params().len() {
            code.local_get(index(parameter));
        }
        code.i32_const(slot.cast_signed()).call_indirect(index(self.table), signature).end();
        res
    }

    /// What all parts share, by the name of the export, with its kind, its number and its type. It comes whole and in order, so that the numbers are
    /// the same in all parts.
    fn entities(&self, source: &Source<'_>) -> Result<Vec<(String, ExportKind, u32, EntityType)>, Refusal> {
        let mut encoder = Renumbered::default();
        let tables = self.tables(source)?.into_iter().map(EntityType::from).collect();
        let memories = source.memories.iter().map(|it| Ok(encoder.memory_type(*it)?.into()));
        let memories = memories.collect::<Result<_, Refusal>>()?;
        let globals = source.globals.iter().map(|it| Ok(encoder.global_type(it.ty)?.into()));
        let flags = (0..self.deferred_parts()).map(|_| Ok(FLAG.into()));
        let globals = globals.chain(flags).collect::<Result<_, Refusal>>()?;
        let tags = source.all_tags().into_iter().map(|it| Ok(encoder.tag_type(it)?.into()));
        let tags = tags.collect::<Result<_, Refusal>>()?;

        let mut res = Vec::new();
        let kinds: [(char, ExportKind, Vec<EntityType>); 4] = [
            ('t', ExportKind::Table, tables),
            ('m', ExportKind::Memory, memories),
            ('g', ExportKind::Global, globals),
            ('e', ExportKind::Tag, tags),
        ];
        for (letter, kind, entities) in kinds {
            res.extend((0..).zip(entities).map(|(number, it)| (format!("${letter}{number}"), kind, number, it)));
        }
        // A part of another build would fit in all else: its flag has another name here.
        for (name, kind, number, _) in &mut res {
            if *kind == ExportKind::Global && *number as usize >= self.globals {
                *name = format!("$build-{:016x}-{number}", self.build);
            }
        }
        Ok(res)
    }

    fn deferred(&self, source: &Source<'_>, part: usize) -> Result<Vec<u8>, Refusal> {
        let shared = &self.shared[part];
        let mut imports = ImportSection::new();
        for (name, _, _, ty) in self.entities(source)? {
            imports.import(PRIMARY, &name, ty);
        }
        for function in shared {
            let signature = self.signatures[*function as usize];
            imports.import(PRIMARY, &self.names[function], EntityType::Function(signature));
        }
        let is_here = |function: &u32| self.part(*function) == part;
        let mut encoder = Renumbered::of(shared.iter().copied().chain(self.defined().filter(is_here)));

        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        for (function, body) in self.defined().zip(&source.bodies).filter(|it| is_here(&it.0)) {
            functions.function(self.signatures[function as usize]);
            encoder.parse_function_body(&mut code, body.clone())?;
        }
        let start = StartSection { function_index: index(shared.len()) + functions.len() };
        functions.function(self.start_signature(source)?);
        let mut body = Function::new([]);
        body.instructions().i32_const(1).global_set(self.flag(part)).end();
        code.function(&body);

        let in_table = source.segments.iter().flat_map(Segment::slots);
        let in_table = in_table.chain(self.stubs.iter().map(|(function, slot)| (*slot, *function)));
        let places: BTreeMap<u32, u32> = in_table.filter(|it| is_here(&it.1)).collect();
        let places: Vec<(u32, u32)> = places.into_iter().collect();
        let mut elements = ElementSection::new();
        for run in places.chunk_by(|a, b| a.0 + 1 == b.0) {
            self.append(&mut elements, &mut encoder, run[0].0, run.iter().map(|it| it.1))?;
        }

        let types = RawSection { id: SectionId::Type as u8, data: source.raw(SectionId::Type) };
        let mut res = Module::new();
        res.section(&types).section(&imports).section(&functions).section(&start).section(&elements).section(&code);
        Ok(res.finish())
    }

    /// The signature of a function without parameters and results.
    fn start_signature(&self, source: &Source<'_>) -> Result<u32, Refusal> {
        let found = source.types.iter().position(|it| it.params().is_empty() && it.results().is_empty());
        found.map(index).ok_or(Refusal::Unsupported("no function without parameters and results"))
    }
}

/// The type of the globals that are 1 once a part is there.
const FLAG: GlobalType = GlobalType { val_type: ValType::I32, mutable: true, shared: false };

/// The function that stubs call.
fn loader(source: &Source<'_>, signatures: &[u32]) -> Result<u32, Refusal> {
    let export = source.exports.iter().find(|it| it.kind == ExternalKind::Func && it.name == LOADER);
    let index = export.ok_or(Refusal::NoLoader)?.index;
    let signature = signatures.get(index as usize).and_then(|it| source.types.get(*it as usize));
    let is_fit = signature.is_some_and(|it| it.params() == [wasmparser::ValType::I32] && it.results().is_empty());
    if is_fit { Ok(index) } else { Err(Refusal::NoLoader) }
}

/// An index of WebAssembly.
fn index(number: usize) -> u32 {
    u32::try_from(number).expect("a module that could be read has fewer of them")
}
