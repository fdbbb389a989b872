//! A pickle of any bytes is read as data, or refused with a typed error.

use crate::stored;
use tracefx_pt2::pickle::Pickle;
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Limits, LoadOptions};

pub(crate) fn check(input: &[u8]) {
    let limits = Limits { pickle_values: 100_000, ..Limits::default() };
    let Ok(pickle) = Pickle::read(input, &limits) else { return };
    // Whatever was accepted can be walked: every id is of this pickle, and no call comes before its parts.
    for (id, _) in pickle.values() {
        let object = pickle.as_object(id);
        assert!(object.is_none_or(|(it, ..)| it.callable < id && it.args < id));
        let _ = (pickle.as_mapping(id), pickle.as_tuple(id), pickle.as_str(id));
    }
    // The same bytes as the pickle of a torch.save file with one small storage.
    let options = LoadOptions { limits, ..LoadOptions::default() };
    drop(TorchSave::read(&stored(&[("a/data.pkl", input), ("a/data/0", &[0; 16])]), &options));
}
