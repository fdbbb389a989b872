//! The command, in one program: what it prints, and how a user runs it.

mod both;
mod command;
