//! `SIGN`: what makes a module an exported program. One record with the fields of [`ExportedProgram`] in a fixed order.

use crate::arg::{number_of, numbered, read_bool};
use crate::cursor::Cursor;
use crate::examples::{read_example, write_example};
use crate::format::constant;
use crate::strings::{StringWriter, Strings};
use crate::structure::{read_argument, read_call_signature, write_argument, write_call_signature};
use crate::tensors::{TensorWriter, Tensors};
use crate::words::Words;
use indexmap::IndexMap;
use std::hash::Hash;
use std::sync::Arc;
use tracefx_core::Result;
use tracefx_core::allocate::copied;
use tracefx_export::{
    Constant, ExportedProgram, GraphSignature, InputKind, InputSpec, ModuleCallEntry, OutputKind, OutputSpec,
    StateEntry,
};
use tracefx_ir::{GraphModule, Str};
use tracefx_sym::{Assumptions, Symbol, ValueRange};

/// The tables that the section refers to, of a file that is being written.
pub(crate) struct SignWriter<'a> {
    pub(crate) words: &'a mut Words,
    pub(crate) strings: &'a mut StringWriter,
    pub(crate) tensors: &'a mut TensorWriter,
}

impl SignWriter<'_> {
    /// Writes everything but the module, and the warnings, which are about the file that the program was read from.
    pub(crate) fn write(&mut self, program: &ExportedProgram) -> Result<()> {
        self.words.version(program.schema_version.0)?;
        self.words.version(program.schema_version.1)?;
        self.text(&program.torch_version)?;
        self.list(&program.signature.input_specs, Self::input_spec)?;
        self.list(&program.signature.output_specs, Self::output_spec)?;
        self.map(&program.state_dict, |it, entry| {
            let index = it.tensors.push(&entry.tensor);
            it.words.count(index)?;
            it.words.word(u32::from(entry.is_parameter) | u32::from(entry.requires_grad) << 1);
            Ok(())
        })?;
        self.map(&program.opaque_state, |it, bytes| it.words.bytes(bytes))?;
        self.map(&program.constants, |it, value| match value {
            Constant::Tensor(tensor) => {
                let index = it.tensors.push(tensor);
                it.words.tagged(constant::TENSOR, index)
            }
            Constant::CustomObj(bytes) => {
                it.words.tagged(constant::CUSTOM_OBJ, 0)?;
                it.words.bytes(bytes)
            }
        })?;
        self.words.count(program.range_constraints.len())?;
        program.range_constraints.iter().try_for_each(|(symbol, range)| self.range(symbol, range))?;
        self.list(&program.module_call_graph, |it, entry| {
            it.text(&entry.fqn)?;
            it.words.word(u32::from(entry.signature.is_some()));
            entry.signature.iter().try_for_each(|signature| write_call_signature(it.words, it.strings, signature))
        })?;
        self.list(&program.verifiers, |it, text| it.text(text))?;
        self.list(&program.guards, |it, text| it.text(text))?;
        match &program.example_inputs {
            Some(values) => {
                self.words.count(values.len() + 1)?;
                values.iter().try_for_each(|it| write_example(self.words, self.strings, self.tensors, it, 0))?;
            }
            None => self.words.word(0),
        }
        self.map(&program.opset_version, |it, version| it.words.version(*version))?;
        self.map(&program.namedtuple_fields, |it, fields| it.list(fields, |it, text| it.text(text)))?;
        self.map(&program.extra_files, |it, text| it.text(text))
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.strings.write(self.words, text)
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T) -> Result<()>) -> Result<()> {
        self.words.count(items.len())?;
        items.iter().try_for_each(|it| write(self, it))
    }

    fn map<T>(&mut self, entries: &IndexMap<Str, T>, mut write: impl FnMut(&mut Self, &T) -> Result<()>) -> Result<()> {
        self.words.count(entries.len())?;
        entries.iter().try_for_each(|(key, value)| {
            self.text(key)?;
            write(self, value)
        })
    }

    fn input_spec(&mut self, spec: &InputSpec) -> Result<()> {
        self.words.count(number_of(InputKind::ALL, &spec.kind))?;
        write_argument(self.words, self.strings, &spec.arg)?;
        self.strings.write_optional(self.words, spec.target.as_deref())?;
        self.words.word(match spec.persistent {
            None => 0,
            Some(is_persistent) => 1 + u32::from(is_persistent),
        });
        Ok(())
    }

    fn output_spec(&mut self, spec: &OutputSpec) -> Result<()> {
        self.words.count(number_of(OutputKind::ALL, &spec.kind))?;
        write_argument(self.words, self.strings, &spec.arg)?;
        self.strings.write_optional(self.words, spec.target.as_deref())
    }

    fn range(&mut self, symbol: &Symbol, range: &ValueRange) -> Result<()> {
        // The name is text and no expression: PyTorch keeps the ranges of `s77 + 1` as those of a symbol.
        self.text(symbol.name())?;
        let Assumptions { integer, positive, nonnegative, real } = symbol.assumptions();
        let flags = [integer, positive, nonnegative, real, range.min.is_some(), range.max.is_some()];
        self.words.word(flags.into_iter().rev().fold(0, |word, flag| word << 1 | u32::from(flag)));
        [range.min, range.max].into_iter().flatten().for_each(|it| self.words.pair(it as u64));
        Ok(())
    }
}

/// The tables that the section refers to, of a file that is being read.
pub(crate) struct SignReader<'a, 'b> {
    pub(crate) cursor: Cursor<'a>,
    pub(crate) strings: &'b mut Strings,
    pub(crate) tensors: &'b mut Tensors,
}

impl SignReader<'_, '_> {
    /// Reads everything but the module.
    pub(crate) fn read(mut self, module: GraphModule) -> Result<ExportedProgram> {
        let schema_version = (self.cursor.version()?, self.cursor.version()?);
        let torch_version = self.text()?;
        let signature = GraphSignature {
            input_specs: self.list(4, "inputs", Self::input_spec)?,
            output_specs: self.list(3, "outputs", Self::output_spec)?,
        };
        let state_dict = self.map(3, "tensors", Self::state_entry)?;
        let opaque_state = self.map(2, "objects", |it| Ok(Arc::new(copied(it.cursor.blob()?)?)))?;
        let constants = self.map(2, "constants", Self::constant)?;
        let range_constraints = self.ranges()?;
        let module_call_graph = self.list(2, "modules", Self::call_entry)?;
        let verifiers = self.list(1, "dialects", Self::text)?;
        let guards = self.list(1, "guards", Self::text)?;
        let example_inputs = match self.cursor.word()? {
            0 => None,
            count => {
                let count = self.cursor.check_count(count - 1, 1, "inputs")?;
                let values = (0..count).map(|_| read_example(&mut self.cursor, self.strings, self.tensors, 0));
                Some(values.collect::<Result<Vec<_>>>()?)
            }
        };
        let opset_version = self.map(3, "operator sets", |it| it.cursor.version())?;
        let namedtuple_fields = self.map(2, "named tuples", |it| it.list(1, "fields", Self::text))?;
        let extra_files = self.map(2, "files", Self::text)?;
        self.cursor.finish()?;
        Ok(ExportedProgram {
            module,
            signature,
            state_dict,
            opaque_state,
            constants,
            range_constraints,
            module_call_graph,
            verifiers,
            guards,
            example_inputs,
            opset_version,
            schema_version,
            torch_version,
            namedtuple_fields,
            extra_files,
            warnings: Vec::new(),
        })
    }

    fn text(&mut self) -> Result<Str> {
        self.strings.next(&mut self.cursor)
    }

    fn list<T>(&mut self, words: usize, what: &str, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.cursor.count(words, what)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn map<T>(
        &mut self,
        words: usize,
        what: &str,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<IndexMap<Str, T>> {
        let mut entries = IndexMap::new();
        for _ in 0..self.cursor.count(words, what)? {
            let key = self.text()?;
            let value = read(self)?;
            self.insert(&mut entries, key, value, what)?;
        }
        Ok(entries)
    }

    fn insert<K: Hash + Eq, T>(&self, entries: &mut IndexMap<K, T>, key: K, value: T, what: &str) -> Result<()> {
        match entries.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(self.cursor.fail(format!("two of the {what} have one name"))),
        }
    }

    fn input_spec(&mut self) -> Result<InputSpec> {
        let kind = self.cursor.word()?;
        let kind = numbered(&self.cursor, InputKind::ALL, kind, "kind of input")?;
        let arg = read_argument(&mut self.cursor, self.strings)?;
        let target = self.strings.next_optional(&mut self.cursor)?;
        let persistent = match self.cursor.word()? {
            0 => None,
            flag => Some(read_bool(&self.cursor, flag - 1)?),
        };
        Ok(InputSpec { kind, arg, target, persistent })
    }

    fn output_spec(&mut self) -> Result<OutputSpec> {
        let kind = self.cursor.word()?;
        let kind = numbered(&self.cursor, OutputKind::ALL, kind, "kind of output")?;
        let arg = read_argument(&mut self.cursor, self.strings)?;
        Ok(OutputSpec { kind, arg, target: self.strings.next_optional(&mut self.cursor)? })
    }

    fn state_entry(&mut self) -> Result<StateEntry> {
        let index = self.cursor.word()?;
        let tensor = self.tensors.take(&self.cursor, index)?;
        let flags = self.cursor.word()?;
        if flags > 3 {
            return Err(self.cursor.fail(format!("a tensor of the state has the flags {flags:#x}")));
        }
        Ok(StateEntry { tensor, is_parameter: flags & 1 != 0, requires_grad: flags & 2 != 0 })
    }

    fn constant(&mut self) -> Result<Constant> {
        let word = self.cursor.word()?;
        match word & 0xff {
            constant::TENSOR => Ok(Constant::Tensor(self.tensors.take(&self.cursor, word >> 8)?)),
            constant::CUSTOM_OBJ if word >> 8 == 0 => Ok(Constant::CustomObj(Arc::new(copied(self.cursor.blob()?)?))),
            _ => Err(self.cursor.fail(format!("{word:#x} begins no constant"))),
        }
    }

    fn ranges(&mut self) -> Result<IndexMap<Symbol, ValueRange>> {
        let mut ranges = IndexMap::new();
        for _ in 0..self.cursor.count(2, "ranges")? {
            let name = self.text()?;
            let word = self.cursor.word()?;
            if word >= 1 << 6 {
                return Err(self.cursor.fail(format!("a range has the flags {word:#x}")));
            }
            let [integer, positive, nonnegative, real, has_min, has_max] =
                [0, 1, 2, 3, 4, 5].map(|bit| word >> bit & 1 != 0);
            let symbol = Symbol::new(&*name, Assumptions { integer, positive, nonnegative, real });
            let mut bound = |is_there| if is_there { self.cursor.pair().map(|it| Some(it as i64)) } else { Ok(None) };
            let range = ValueRange { min: bound(has_min)?, max: bound(has_max)? };
            self.insert(&mut ranges, symbol, range, "ranges")?;
        }
        Ok(ranges)
    }

    fn call_entry(&mut self) -> Result<ModuleCallEntry> {
        let fqn = self.text()?;
        let has_signature = self.cursor.word()?;
        let signature = match read_bool(&self.cursor, has_signature)? {
            true => Some(read_call_signature(&mut self.cursor, self.strings)?),
            false => None,
        };
        Ok(ModuleCallEntry { fqn, signature })
    }
}
