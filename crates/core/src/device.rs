//! Devices, layouts and memory formats by PyTorch's names. Only the CPU computes; other devices are kept as they are written.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Where a tensor lives: PyTorch's `torch.device`, kept as written in the program.
///
/// ```
/// use tracefx_core::Device;
/// let d: Device = "cuda:1".parse().unwrap();
/// assert_eq!((&*d.kind, d.index, d.to_string()), ("cuda", Some(1), "cuda:1".to_string()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The device type: `cpu`, `cuda`, `meta`…
    pub kind: Cow<'static, str>,
    /// The ordinal, where the program names one.
    pub index: Option<i64>,
}

impl Device {
    /// The CPU.
    pub const fn cpu() -> Self {
        Device { kind: Cow::Borrowed("cpu"), index: None }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}:{index}", self.kind),
            None => f.write_str(&self.kind),
        }
    }
}

impl FromStr for Device {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse().map_err(|_| ())?)),
            None => (text, None),
        };
        let is_name = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_name { Ok(Device { kind: Cow::Owned(kind.to_string()), index }) } else { Err(()) }
    }
}

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// PyTorch's name, without the `torch.` prefix.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The value of this name, with or without the `torch.` prefix.
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.strip_prefix("torch.").unwrap_or(name);
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "torch.{}", self.name())
            }
        }
    };
}

named_enum! {
    /// How the elements of a tensor are stored: PyTorch's `torch.layout`.
    Layout {
        /// Dense, addressed by strides.
        Strided = "strided",
        /// Sparse coordinates.
        SparseCoo = "sparse_coo",
        /// Compressed sparse rows.
        SparseCsr = "sparse_csr",
        /// Compressed sparse columns.
        SparseCsc = "sparse_csc",
        /// Compressed sparse row blocks.
        SparseBsr = "sparse_bsr",
        /// Compressed sparse column blocks.
        SparseBsc = "sparse_bsc",
        /// oneDNN's opaque layout.
        Mkldnn = "_mkldnn",
        /// PyTorch's jagged nested tensors.
        Jagged = "jagged",
    }
}

named_enum! {
    /// The order of dimensions in memory: PyTorch's `torch.memory_format`.
    MemoryFormat {
        /// Row-major.
        Contiguous = "contiguous_format",
        /// NHWC.
        ChannelsLast = "channels_last",
        /// NDHWC.
        ChannelsLast3d = "channels_last_3d",
        /// The input's own strides.
        Preserve = "preserve_format",
    }
}

impl Layout {
    /// The layout of this number: that of `c10::Layout`, which PyTorch's operators take, too.
    pub const fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            0 => Layout::Strided,
            1 => Layout::SparseCoo,
            2 => Layout::SparseCsr,
            3 => Layout::Mkldnn,
            4 => Layout::SparseCsc,
            5 => Layout::SparseBsr,
            6 => Layout::SparseBsc,
            7 => Layout::Jagged,
            _ => return None,
        })
    }
}

impl MemoryFormat {
    /// The memory format of this number: that of `c10::MemoryFormat`, which PyTorch's operators take, too.
    pub const fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            0 => MemoryFormat::Contiguous,
            1 => MemoryFormat::Preserve,
            2 => MemoryFormat::ChannelsLast,
            3 => MemoryFormat::ChannelsLast3d,
            _ => return None,
        })
    }
}
