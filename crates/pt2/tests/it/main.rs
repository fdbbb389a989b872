//! PyTorch's archives, read, refused, propagated, decomposed and saved, in one program.

mod contents;
mod decompose;
mod hostile;
mod inputs;
mod programs;
mod propagation;
mod recorded;
mod refused;
mod saved;
mod stream;
mod unflatten;
mod verifier;
