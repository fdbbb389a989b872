//! Reader of PyTorch's .pt2 archives; opening one runs no code.
