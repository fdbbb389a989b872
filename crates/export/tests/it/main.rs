//! Programs and shapes beside what PyTorch recorded, in one program.

mod dynamic_shapes;
