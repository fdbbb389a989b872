//! The numbers of the format. TypeScript's copy is printed from here; `docs/format.md` explains them.

use std::fmt;

/// The first four bytes of a file.
pub const MAGIC: [u8; 4] = *b"FXG\0";
/// Readers refuse another major version.
pub const MAJOR: u16 = 1;
/// A newer minor version adds sections that older readers may skip.
pub const MINOR: u16 = 0;

/// Bytes of the header.
pub const HEADER_LEN: usize = 32;
/// Bytes of one entry of the section table.
pub const ENTRY_LEN: usize = 24;
/// The header's flag that says that the checksum is there.
pub const HAS_CHECKSUM: u32 = 1;
/// Where the checksum stands in the header.
pub const CHECKSUM_AT: usize = 24;

/// A section's flag: a reader that does not know the section must refuse the file.
pub const CRITICAL: u32 = 1;
/// A section's flag: it begins at a multiple of [`WIDE_ALIGNMENT`], not of [`ALIGNMENT`].
pub const WIDE: u32 = 2;
/// Where sections begin: at multiples of this.
pub const ALIGNMENT: usize = 8;
/// Where wide sections, and the storages in them, begin.
pub const WIDE_ALIGNMENT: usize = 64;

/// The largest number that stands in the upper 24 bits of a word.
pub const MAX_PAYLOAD: u32 = (1 << 24) - 1;

/// Sizes and versions are below this, so that a number of JavaScript holds them exactly.
pub const EXACT: u64 = 1 << 53;

/// The letters of the section of saved plans. It is no [`Tag`]: readers of graphs skip it, as any section that they do not know.
pub const PLAN: [u8; 4] = *b"PLAN";

macro_rules! sections {
    ($($(#[$meta:meta])* $variant:ident = $text:literal $flags:expr),+ $(,)?) => {
        /// A kind of section, in the order in which a file has them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Tag { $($(#[$meta])* $variant),+ }

        impl Tag {
            /// Every kind, in file order.
            pub const ALL: &'static [Tag] = &[$(Tag::$variant),+];

            /// The four letters.
            pub const fn name(self) -> &'static str {
                match self { $(Tag::$variant => $text),+ }
            }

            /// The flags that the section always has.
            pub const fn flags(self) -> u32 {
                match self { $(Tag::$variant => $flags),+ }
            }
        }
    };
}

sections! {
    /// Strings, each once, in the order in which the other sections first refer to them.
    Strs = "STRS" CRITICAL,
    /// Symbolic expressions.
    Syms = "SYMS" CRITICAL,
    /// The tree of modules.
    Mods = "MODS" CRITICAL,
    /// A graph; the only section that may be there several times.
    Grph = "GRPH" CRITICAL,
    /// Names that were given but that no node has any more.
    Nams = "NAMS" 0,
    /// What passes and the exporter have noted about nodes.
    Meta = "META" 0,
    /// What became of a module that a host gave: an answer, never a file.
    Edit = "EDIT" CRITICAL,
    /// What makes a module an exported program.
    Sign = "SIGN" CRITICAL,
    /// Tensors and the lengths of their storages.
    Tens = "TENS" CRITICAL,
    /// The bytes of the storages.
    Data = "DATA" CRITICAL | WIDE,
}

impl Tag {
    /// The letters as a little-endian word.
    pub fn code(self) -> u32 {
        let name = self.name().as_bytes();
        u32::from_le_bytes([name[0], name[1], name[2], name[3]])
    }

    /// The kind of this word.
    pub fn from_code(code: u32) -> Option<Self> {
        Tag::ALL.iter().copied().find(|it| it.code() == code)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! numbers {
    ($(#[$meta:meta])* $module:ident { $($(#[$nmeta:meta])* $name:ident = $value:literal),+ $(,)? }) => {
        $(#[$meta])*
        pub mod $module {
            $($(#[$nmeta])* pub const $name: u32 = $value;)+

            /// The names and numbers, in order.
            pub const ALL: &[(&str, u32)] = &[$((stringify!($name), $value)),+];
        }
    };
}

numbers! {
    /// What an argument's first word says in its lower 8 bits.
    arg {
        /// `None`.
        NONE = 0,
        /// `...`.
        ELLIPSIS = 1,
        /// A bool: the payload is 0 or 1.
        BOOL = 2,
        /// An int: two words follow, the lower one first.
        INT = 3,
        /// A float: the two words of its bits follow.
        FLOAT = 4,
        /// A complex number: the words of two floats follow.
        COMPLEX = 5,
        /// A string: the payload is its index.
        STR = 6,
        /// A dtype: the payload is its number.
        DTYPE = 7,
        /// A device without an index: the payload is the string of its type.
        DEVICE = 8,
        /// A device with an index: the same, and a word with the index, below 2^31.
        DEVICE_INDEX = 9,
        /// A layout: the payload is its number.
        LAYOUT = 10,
        /// A memory format: the payload is its number.
        MEMORY_FORMAT = 11,
        /// Another node: the payload is its position in the graph.
        NODE = 12,
        /// An operator: the payload is the string of its name.
        OP = 13,
        /// A list: the payload is the number of items, which follow.
        LIST = 14,
        /// A tuple: likewise.
        TUPLE = 15,
        /// A dict: the payload is the number of entries; each is the word of its key's string and the value.
        DICT = 16,
        /// A slice: start, stop and step follow.
        SLICE = 17,
        /// A tensor, which only example inputs may be: the payload is its index.
        TENSOR = 18,
    }
}

numbers! {
    /// What the first word of an abstract value says in its lower 8 bits.
    val {
        /// No value.
        NONE = 0,
        /// A tensor: the payload is its dtype, its layout (8 bits each) and whether it requires a gradient (1 bit).
        TENSOR = 1,
        /// An int, float or bool, known or symbolic: its number follows.
        NUMBER = 2,
        /// A list: the payload is the number of items, which follow.
        LIST = 3,
        /// A tuple: likewise.
        TUPLE = 4,
    }
}

numbers! {
    /// What the first word of a number says in its lower 8 bits.
    sym {
        /// A known int: two words follow, the lower one first.
        INT = 0,
        /// A known float: the two words of its bits follow.
        FLOAT = 1,
        /// A known bool: the payload is 0 or 1.
        BOOL = 2,
        /// An expression: the payload is its index in `SYMS`.
        EXPR = 3,
    }
}

numbers! {
    /// What an attribute of a module is.
    attribute {
        /// A parameter.
        PARAMETER = 0,
        /// A buffer that is saved with the module.
        BUFFER = 1,
        /// A buffer or constant that is not saved with the module.
        CONSTANT = 2,
        /// A sub-module.
        MODULE = 3,
        /// A tensor whose data is elsewhere: in calls, never in a file.
        FAKE = 4,
    }
}

numbers! {
    /// What the first word of a place in the signature says in its lower 8 bits; the payload is the string of its name.
    argument {
        /// A tensor.
        TENSOR = 0,
        /// A symbolic int.
        SYM_INT = 1,
        /// A symbolic float.
        SYM_FLOAT = 2,
        /// A symbolic bool.
        SYM_BOOL = 3,
        /// A custom object: the string of its class follows.
        CUSTOM_OBJ = 4,
        /// An effect token.
        TOKEN = 5,
        /// A fixed value: an argument that is None, a bool, an int, a float or a string follows.
        CONSTANT = 6,
    }
}

numbers! {
    /// What the first word of a constant says in its lower 8 bits.
    constant {
        /// A tensor: the payload is its index.
        TENSOR = 0,
        /// A custom object: its bytes follow.
        CUSTOM_OBJ = 1,
    }
}

numbers! {
    /// What the first word of a step of an edit script says in its lower 8 bits.
    edit {
        /// Nodes as they were: the payload is their number; the place of the first follows.
        KEEP = 0,
        /// A node that was there, changed: the payload is its flags; its place before and the node follow.
        CHANGE = 1,
        /// A new node: the payload is its flags; one more than the number of the node that it is from, or zero, and the node
        /// follow.
        MAKE = 2,
    }
}

numbers! {
    /// Flags of a node in an edit script.
    edited {
        /// Its notes follow: its abstract value, the number of entries, the entries.
        NOTES = 1,
        /// What it gives is not known any more.
        FORGET = 2,
        /// Its arguments changed, and follow; of a new node they always do.
        ARGS = 4,
        /// Its target, name or type changed: the opcode, the target, the name and the type follow; of a new node they always do.
        CALL = 8,
    }
}

/// A table of numbers for TypeScript.
pub struct Table {
    /// What the numbers are.
    pub doc: &'static str,
    /// The name of the table.
    pub name: &'static str,
    /// Names and numbers.
    pub numbers: &'static [(&'static str, u32)],
}

/// Every table of numbers.
pub const TABLES: &[Table] = &[
    Table { doc: "What the first word of an argument says in its lower 8 bits.", name: "ARG", numbers: arg::ALL },
    Table { doc: "What the first word of an abstract value says.", name: "VAL", numbers: val::ALL },
    Table { doc: "What the first word of a number says.", name: "SYM", numbers: sym::ALL },
    Table { doc: "What an attribute of a module is.", name: "ATTRIBUTE", numbers: attribute::ALL },
    Table { doc: "What the first word of a place in a signature says.", name: "ARGUMENT", numbers: argument::ALL },
    Table { doc: "What the first word of a constant says.", name: "CONSTANT", numbers: constant::ALL },
    Table { doc: "What the first word of a step of an edit script says.", name: "EDIT", numbers: edit::ALL },
    Table { doc: "Flags of a node in an edit script.", name: "EDITED", numbers: edited::ALL },
];
