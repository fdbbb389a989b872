//! `TENS` and `DATA`: tensors as views of storages, and the bytes of the storages, each once.

use crate::arg::{number_of, numbered};
use crate::cursor::Cursor;
use crate::format::{Tag, WIDE_ALIGNMENT};
use crate::words::Words;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};
use tracefx_core::{Code, DType, Diagnostic, Dims, Result, Storage, Tensor};

/// The tensors of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct TensorWriter {
    tensors: Vec<Tensor>,
    storages: IndexMap<usize, Storage, FxBuildHasher>,
}

impl TensorWriter {
    /// Adds a tensor, and gives its index.
    pub(crate) fn push(&mut self, tensor: &Tensor) -> usize {
        self.storages.entry(tensor.storage().id()).or_insert_with(|| tensor.storage().clone());
        self.tensors.push(tensor.clone());
        self.tensors.len() - 1
    }

    /// The storages in the order of first use.
    pub(crate) fn storages(&self) -> Vec<Storage> {
        self.storages.values().cloned().collect()
    }

    /// The index of storages and tensors, unless there are none.
    pub(crate) fn index(&self) -> Result<Option<Vec<u8>>> {
        if self.tensors.is_empty() {
            return Ok(None);
        }
        let mut words = Words::default();
        words.count(self.storages.len())?;
        words.count(self.tensors.len())?;
        self.storages.values().try_for_each(|it| words.size(it.len()))?;
        for tensor in &self.tensors {
            let storage = self.storages.get_index_of(&tensor.storage().id()).expect("push adds the storage");
            words.count(storage)?;
            words.tagged(number_of(DType::ALL, &tensor.dtype()) as u32, tensor.rank())?;
            tensor.sizes().iter().chain(tensor.strides()).try_for_each(|&it| words.size(it))?;
            words.size(tensor.offset())?;
        }
        words.into_bytes().map(Some)
    }
}

/// The tensors of a file that is being read, each to be taken once and in order.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    items: Vec<Tensor>,
    n_used: usize,
}

impl Tensors {
    /// Reads the index, and the storages from `data` or, where the file has none, from those that were brought.
    pub(crate) fn read(index: Option<Cursor<'_>>, data: Option<Cursor<'_>>, beside: &[Storage]) -> Result<Self> {
        let Some(mut cursor) = index else {
            return match data {
                Some(data) => Err(data.fail("there are no tensors")),
                None => Ok(Tensors::default()),
            };
        };
        let n_storages = cursor.word()?;
        let n_tensors = cursor.word()?;
        let n_storages = cursor.check_count(n_storages, 2, "storages")?;
        let n_tensors = cursor.check_count(n_tensors, 4, "tensors")?;
        if n_tensors == 0 {
            return Err(cursor.fail("the section is empty"));
        }
        let mut lens = Vec::with_capacity(n_storages);
        for _ in 0..n_storages {
            lens.push(cursor.size()?);
        }
        let storages = match data {
            Some(data) => read_storages(data, &lens)?,
            None => take_storages(&cursor, &lens, beside)?,
        };
        let mut items = Vec::with_capacity(n_tensors);
        let mut n_used = 0;
        for _ in 0..n_tensors {
            let storage = cursor.word()? as usize;
            if storage >= storages.len() || storage > n_used {
                return Err(cursor.fail(format!("a tensor looks at storage {storage} before storage {n_used}")));
            }
            n_used = n_used.max(storage + 1);
            items.push(read_tensor(&mut cursor, &storages[storage])?);
        }
        cursor.finish()?;
        if n_used < storages.len() {
            return Err(cursor.fail(format!("no tensor looks at storage {n_used}")));
        }
        Ok(Tensors { items, n_used: 0 })
    }

    /// The tensor of an index that the cursor just read; they come in order.
    pub(crate) fn take(&mut self, cursor: &Cursor<'_>, index: u32) -> Result<Tensor> {
        if index as usize != self.n_used {
            return Err(cursor.fail(format!("tensor {index} stands where tensor {} was expected", self.n_used)));
        }
        let tensor = self.items.get(self.n_used);
        self.n_used += 1;
        tensor.cloned().ok_or_else(|| cursor.fail(format!("there is no tensor {index}")))
    }

    /// The storages that the tensors look at, each once, in order.
    pub(crate) fn storages(&self) -> Vec<Storage> {
        let mut seen = FxHashSet::default();
        let storages = self.items.iter().map(Tensor::storage);
        storages.filter(|it| seen.insert(it.id())).cloned().collect()
    }

    /// Refuses tensors that nothing refers to.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.n_used == self.items.len() {
            return Ok(());
        }
        let what = format!("{}: nothing refers to tensor {}", Tag::Tens, self.n_used);
        Err(Diagnostic::new(Code::WireMalformed, what))
    }
}

fn read_storages(mut data: Cursor<'_>, lens: &[usize]) -> Result<Vec<Storage>> {
    let mut storages = Vec::with_capacity(lens.len());
    let total = data.rest().len();
    for &len in lens {
        let end = total - data.rest().len();
        let padding = end.next_multiple_of(WIDE_ALIGNMENT) - end;
        if data.bytes(padding)?.iter().any(|&it| it != 0) {
            return Err(data.fail("the bytes between two storages are not zero"));
        }
        storages.push(Storage::from_bytes(data.bytes(len)?)?);
    }
    data.finish()?;
    Ok(storages)
}

fn take_storages(cursor: &Cursor<'_>, lens: &[usize], beside: &[Storage]) -> Result<Vec<Storage>> {
    if lens.len() != beside.len() {
        let what = format!("the tensors are not in the file: it needs {} storages, not {}", lens.len(), beside.len());
        return Err(cursor.fail(what).help("give the storages beside it, in the order of the file"));
    }
    match lens.iter().zip(beside).position(|(&len, storage)| len != storage.len()) {
        Some(at) => {
            let what = format!("storage {at} has {} bytes, and the file needs {}", beside[at].len(), lens[at]);
            Err(cursor.fail(what))
        }
        None => Ok(beside.to_vec()),
    }
}

fn read_tensor(cursor: &mut Cursor<'_>, storage: &Storage) -> Result<Tensor> {
    let word = cursor.word()?;
    let dtype = numbered(cursor, DType::ALL, word & 0xff, "dtype")?;
    let rank = cursor.check_count(word >> 8, 4, "dimensions")?;
    let sizes = (0..rank).map(|_| cursor.size()).collect::<Result<Dims>>()?;
    let strides = (0..rank).map(|_| cursor.size()).collect::<Result<Dims>>()?;
    let offset = cursor.size()?;
    Tensor::view_of(storage.clone(), dtype, &sizes, &strides, offset)
        .map_err(|it| it.note(cursor.fail("a tensor").message()))
}
