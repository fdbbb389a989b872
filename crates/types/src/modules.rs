//! What the rules know of `nn` modules: the graph's leaves are opaque, so whoever calls says what they are.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use ts_rs::TS;

/// The modules of a graph by their paths.
pub type Modules = BTreeMap<String, ModuleSpec>;

/// The part of a module's constructor that its types depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "class", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ModuleSpec {
    /// `torch.nn.Conv2d`.
    Conv2d {
        /// The number of channels that go in.
        #[ts(type = "number")]
        in_channels: i64,
        /// The number of channels that come out.
        #[ts(type = "number")]
        out_channels: i64,
        /// The window.
        window: Window,
    },
    /// `torch.nn.MaxPool2d`.
    MaxPool2d {
        /// The window.
        window: Window,
    },
    /// `torch.nn.BatchNorm2d`.
    BatchNorm2d {
        /// The number of channels.
        #[ts(type = "number")]
        num_features: i64,
    },
    /// `torch.nn.AdaptiveAvgPool2d`.
    AdaptiveAvgPool2d {
        /// The height and width that come out; `None` is the one that goes in.
        #[ts(type = "[number | null, number | null]")]
        output_size: [Option<i64>; 2],
    },
    /// `torch.nn.Linear`.
    Linear {
        /// The size of the last dimension that goes in.
        #[ts(type = "number")]
        in_features: i64,
        /// The size of the last dimension that comes out.
        #[ts(type = "number")]
        out_features: i64,
    },
    /// `torch.nn.LayerNorm`.
    LayerNorm {
        /// The sizes of the last dimensions.
        #[ts(type = "number[]")]
        normalized_shape: Vec<i64>,
    },
    /// `torch.nn.Embedding`.
    Embedding {
        /// The size of the dimension that is added.
        #[ts(type = "number")]
        embedding_dim: i64,
    },
    /// `torch.nn.ReLU`.
    ReLU {},
    /// `torch.nn.Dropout`.
    Dropout {},
}

/// A window that slides over height and width.
///
/// ```
/// use tracefx_types::{ModuleSpec, Window};
/// let window = Window { kernel_size: [3, 3], stride: [2, 2], padding: [1, 1], dilation: [1, 1] };
/// let conv = ModuleSpec::Conv2d { in_channels: 3, out_channels: 8, window };
/// let same = ModuleSpec::Conv2d { in_channels: 3, out_channels: 8, window: Window::SAME };
/// # assert_ne!(conv, same);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    /// Its size.
    #[ts(type = "[number, number]")]
    pub kernel_size: [i64; 2],
    /// How far it moves.
    #[ts(type = "[number, number]")]
    pub stride: [i64; 2],
    /// What is put around the image.
    #[ts(type = "[number, number]")]
    pub padding: [i64; 2],
    /// The distance of its taps.
    #[ts(type = "[number, number]")]
    pub dilation: [i64; 2],
}

impl Window {
    /// What `padding="same"` is, whatever the kernel and the dilation are: what comes out has the size of what goes in. The
    /// padding by itself may be of another length on each side, so it is no number; and such a window moves by 1.
    pub const SAME: Window = Window { kernel_size: [1, 1], stride: [1, 1], padding: [0, 0], dilation: [1, 1] };
}
