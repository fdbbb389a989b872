//! Passes on graphs that are larger than an example, on hostile ones, and by the numbers that graphs compute.

mod boundary;
mod build;
mod constants;
mod custom;
mod devices;
mod matching;
mod normalizing;
mod regions;
mod replacing;
mod sources;
mod writes;
