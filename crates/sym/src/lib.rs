//! Symbolic integers: canonical expressions, ranges and the parser of PyTorch's size expressions.
