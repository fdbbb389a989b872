//! The registry beside PyTorch's: what it lists, which overload a call is for, and what is known of results without data.

mod bind;
mod core;
mod decomposed;
mod overloads;
mod propagate;
mod python_numbers;
mod recorded;
mod symbolic_views;
