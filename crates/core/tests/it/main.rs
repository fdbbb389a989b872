//! Elements beside what PyTorch recorded, in one program.

mod float8;
