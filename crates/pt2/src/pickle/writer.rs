//! Pickles written; what goes into them is `save`'s.

/// Writes a pickle of protocol 2, instruction by instruction.
///
/// It names classes and functions, as pickles do; only what tensors and containers are made of is ever named by this crate.
#[derive(Debug)]
pub(crate) struct PickleWriter(Vec<u8>);

impl PickleWriter {
    pub(crate) fn new() -> Self {
        PickleWriter(vec![0x80, 2])
    }

    pub(crate) fn none(&mut self) {
        self.0.push(b'N');
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.0.push(if value { 0x88 } else { 0x89 });
    }

    pub(crate) fn int(&mut self, value: i64) {
        match i32::try_from(value) {
            Ok(it) => {
                self.0.push(b'J');
                self.0.extend(it.to_le_bytes());
            }
            Err(_) => {
                self.0.extend([0x8a, 8]);
                self.0.extend(value.to_le_bytes());
            }
        }
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.0.push(b'G');
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn str(&mut self, value: &str) {
        self.0.push(b'X');
        self.0.extend((value.len() as u32).to_le_bytes());
        self.0.extend(value.as_bytes());
    }

    pub(crate) fn global(&mut self, module: &str, name: &str) {
        self.0.push(b'c');
        self.0.extend(format!("{module}\n{name}\n").as_bytes());
    }

    pub(crate) fn mark(&mut self) {
        self.0.push(b'(');
    }

    /// A tuple of what came after the last mark.
    pub(crate) fn tuple(&mut self) {
        self.0.push(b't');
    }

    pub(crate) fn empty_list(&mut self) {
        self.0.push(b']');
    }

    /// Appends what came after the last mark to the list before it.
    pub(crate) fn appends(&mut self) {
        self.0.push(b'e');
    }

    pub(crate) fn empty_dict(&mut self) {
        self.0.push(b'}');
    }

    /// Puts the pairs after the last mark into the dict before it.
    pub(crate) fn set_items(&mut self) {
        self.0.push(b'u');
    }

    /// A call; `args` writes a mark and the arguments.
    pub(crate) fn call(&mut self, module: &str, name: &str, args: impl FnOnce(&mut Self)) {
        self.global(module, name);
        args(self);
        self.tuple();
        self.0.push(b'R');
    }

    /// An object of the class and the tuple of arguments before it.
    pub(crate) fn new_object(&mut self) {
        self.0.push(0x81);
    }

    /// Gives the object before the last value that value as its state.
    pub(crate) fn build(&mut self) {
        self.0.push(b'b');
    }

    /// What the last value names.
    pub(crate) fn persistent(&mut self) {
        self.0.push(b'Q');
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'.');
        self.0
    }
}
