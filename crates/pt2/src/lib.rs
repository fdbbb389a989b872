//! Reader and writer of PyTorch's `.pt2` archives; opening one runs no code.
#![forbid(unsafe_code)]

mod archive;
mod limits;
mod options;
pub mod pickle;
mod program;
mod save;
pub mod schema;
mod stream;
pub mod torch_save;
mod zip;

pub use archive::{Archive, Container};
pub use limits::Limits;
pub use options::LoadOptions;
pub use program::{load, load_archive};
pub use save::{ArchiveWriter, SCHEMA_VERSION, SaveOptions, save};
pub use stream::{ArchiveStream, Order, Request};
