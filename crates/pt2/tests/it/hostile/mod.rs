//! Files that mean harm: each must be refused with a typed error, and no number in one may cost memory or time.

mod archives;
mod files;
mod mutations;
mod pickles;
mod programs;
mod streamed;
mod zip_writer;
