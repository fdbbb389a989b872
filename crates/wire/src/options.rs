//! What is written and what is accepted, where callers may choose.

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the file has a checksum.
    pub checksum: bool,
    /// Whether the bytes of the tensors are in the file. Without them, who reads it brings the storages, in the order
    /// that [`storages`](crate::storages) gives.
    pub weights: bool,
    /// Whether names that no node has any more stay taken, so that the reader names new nodes exactly as the writer
    /// would. Without them, the bytes do not depend on the history of edits.
    pub names: bool,
}

impl Options {
    /// For a file: complete, checked and independent of the history of edits.
    pub const FILE: Options = Options { checksum: true, weights: true, names: false };
    /// For a call across the boundary, where the tensors stay where they are and the names must go on as they were.
    pub const CALL: Options = Options { checksum: false, weights: false, names: true };
}

/// What a reader accepts. All other sizes are bounded by the bytes that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of bytes.
    pub bytes: u64,
    /// The number of nodes of one graph.
    pub nodes: usize,
    /// The number of modules.
    pub modules: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: u64::MAX, nodes: 1 << 24, modules: 1 << 16 }
    }
}

/// How deep arguments, abstract values, modules and tree specs may be nested, in what is read and in what is written.
///
/// It is no option: what a writer accepts every reader must, and readers recur on the smallest stack that is in use.
pub const MAX_DEPTH: usize = 64;
