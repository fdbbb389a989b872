//! Passes on graphs that are larger than an example, and on hostile ones.

mod boundary;
mod build;
mod custom;
mod devices;
mod matching;
mod normalizing;
mod regions;
mod replacing;
mod sources;
mod writes;
