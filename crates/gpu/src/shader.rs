//! The text of one module: its bindings, elements as they are loaded and stored, and the functions that its body calls.

use crate::program::{Binding, DeviceBufferId};
use crate::{complex_functions, functions, special_functions};
use std::fmt::Write;
use tracefx_core::{DType, Dims};

/// How registers hold elements of a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `f32`: also of the narrower floats, which are rounded when they are made.
    Float,
    /// `i32`: also of the narrower integers.
    Int,
    /// `bool`.
    Bool,
    /// `vec2<u32>`: the low word and the high one of an int64; also of uint32, whose high word is zero.
    Long,
}

impl Kind {
    /// The kind of a dtype that shaders compute with.
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Float32 | DType::Float16 | DType::BFloat16 => Some(Kind::Float),
            DType::Int32 | DType::Int16 | DType::Int8 | DType::UInt16 | DType::UInt8 => Some(Kind::Int),
            DType::Bool => Some(Kind::Bool),
            DType::Int64 | DType::UInt32 => Some(Kind::Long),
            DType::UInt64
            | DType::Float8E4M3FN
            | DType::Float8E5M2
            | DType::Float8E4M3FNUZ
            | DType::Float8E5M2FNUZ
            | DType::Float8E8M0FNU
            | DType::Float64
            | DType::Complex32
            | DType::Complex64
            | DType::Complex128 => None,
        }
    }

    /// The type of a register.
    pub(crate) fn register(self) -> &'static str {
        match self {
            Kind::Float => "f32",
            Kind::Int => "i32",
            Kind::Bool => "bool",
            Kind::Long => "vec2<u32>",
        }
    }

    fn stored(self) -> &'static str {
        match self {
            Kind::Bool => "u32",
            Kind::Float | Kind::Int | Kind::Long => self.register(),
        }
    }
}

/// A tensor on the device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) buffer: DeviceBufferId,
    /// Whether several elements are in a word.
    pub(crate) is_packed: bool,
    /// Whether they are numbers of 16 bits of the device.
    pub(crate) is_half: bool,
    pub(crate) dtype: DType,
    pub(crate) sizes: Dims,
    pub(crate) strides: Dims,
    pub(crate) offset: usize,
}

impl View {
    pub(crate) fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The same elements with the dimension `dim` in the last place.
    pub(crate) fn with_last(&self, dim: usize) -> View {
        self.with_dims(&[dim])
    }

    /// The same elements with these dimensions behind the others.
    pub(crate) fn with_dims(&self, dims: &[usize]) -> View {
        let order: Vec<usize> =
            (0..self.sizes.len()).filter(|it| !dims.contains(it)).chain(dims.iter().copied()).collect();
        let sizes = order.iter().map(|&it| self.sizes[it]).collect();
        let strides = order.iter().map(|&it| self.strides[it]).collect();
        View { sizes, strides, ..self.clone() }
    }

    /// The strides as a tensor of these sizes is read, which it broadcasts to.
    pub(crate) fn expanded(&self, sizes: &[usize]) -> View {
        let lead = sizes.len() - self.sizes.len();
        let stride = |dim: usize| {
            let own = dim.checked_sub(lead)?;
            Some(self.strides[own]).filter(|_| self.sizes[own] == sizes[dim])
        };
        let strides = (0..sizes.len()).map(|dim| stride(dim).unwrap_or(0)).collect();
        View { sizes: Dims::from_slice(sizes), strides, ..self.clone() }
    }

    /// Where the element at these coordinates is.
    pub(crate) fn at(&self, coordinates: &[String]) -> String {
        let mut res = format!("{}u", self.offset);
        for ((coordinate, stride), size) in coordinates.iter().zip(&self.strides).zip(&self.sizes) {
            match (*stride, *size) {
                (0, _) | (_, 1) => {}
                (1, _) => _ = write!(res, " + {coordinate}"),
                (stride, _) => _ = write!(res, " + {coordinate} * {stride}u"),
            }
        }
        res.strip_prefix("0u + ").map_or(res.clone(), str::to_owned)
    }
}

/// How elements are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    As(Kind),
    /// Words that are moved, so many for each element.
    Words(usize),
    /// Words that shaders write to at the same time.
    Atomics,
    /// Words of several elements each.
    Packed(DType),
    /// Numbers of 16 bits.
    Halves,
}

/// The text of a module that grows.
#[derive(Debug, Default)]
pub(crate) struct Shader {
    bindings: Vec<(Binding, Bound)>,
    /// Variables of the module.
    pub(crate) globals: String,
    /// The statements of the entry point.
    pub(crate) body: String,
    /// Whether subgroups of the device add up what their invocations have.
    pub(crate) has_subgroups: bool,
    /// Whether the text has numbers of 16 bits.
    pub(crate) has_halves: bool,
}

/// What begins the text of a module whose subgroups add up what they have, as WGSL asks for it. naga has the functions without it, and
/// does not know it.
pub const ENABLE_SUBGROUPS: &str = "enable subgroups;\n";

/// The invocations of a workgroup of [`Shader::for_each`].
pub(crate) const WORKGROUP: u32 = 64;

impl Shader {
    /// A module without a text, of a device that has subgroups or does not.
    pub(crate) fn new(has_subgroups: bool) -> Self {
        Shader { has_subgroups, ..Shader::default() }
    }

    fn bind(&mut self, buffer: DeviceBufferId, is_written: bool, bound: Bound) -> String {
        let at = match self.bindings.iter().position(|(it, as_what)| it.buffer == buffer && *as_what == bound) {
            Some(at) => {
                self.bindings[at].0.is_written |= is_written;
                at
            }
            None => {
                self.bindings.push((Binding { buffer, is_written }, bound));
                self.bindings.len() - 1
            }
        };
        format!("b{at}")
    }

    /// The element at a place, as a register holds it.
    ///
    /// # Panics
    /// Of a dtype that has no kind.
    pub(crate) fn load(&mut self, view: &View, at: &str) -> String {
        let kind = kind_of(view.dtype);
        if view.dtype == DType::UInt32 {
            return format!("vec2<u32>({}, 0u)", self.load_words(view, at));
        }
        if view.is_half {
            let name = self.bind(view.buffer, false, Bound::Halves);
            return format!("f32({name}[{at}])");
        }
        if view.is_packed {
            let word = self.load_words(view, at);
            return match kind {
                Kind::Bool => format!("({word} != 0u)"),
                Kind::Float | Kind::Int | Kind::Long => format!("bitcast<{}>({word})", kind.register()),
            };
        }
        let name = self.bind(view.buffer, false, Bound::As(kind));
        match kind {
            Kind::Bool => format!("({name}[{at}] != 0u)"),
            Kind::Float | Kind::Int | Kind::Long => format!("{name}[{at}]"),
        }
    }

    /// The statement that writes what a register holds.
    pub(crate) fn store(&mut self, view: &View, at: &str, value: &str) -> String {
        let kind = kind_of(view.dtype);
        if view.dtype == DType::UInt32 {
            return self.store_words(view, at, &format!("({value}).x"));
        }
        if view.is_half {
            let name = self.bind(view.buffer, true, Bound::Halves);
            // The value is a number of 16 bits already: nothing is rounded.
            return format!("{name}[{at}] = f16({value});");
        }
        let name = self.bind(view.buffer, true, Bound::As(kind));
        match kind {
            Kind::Bool => format!("{name}[{at}] = select(0u, 1u, {value});"),
            Kind::Float | Kind::Int | Kind::Long => format!("{name}[{at}] = {value};"),
        }
    }

    /// The words of the element at a place.
    pub(crate) fn load_words(&mut self, view: &View, at: &str) -> String {
        if view.is_half {
            return format!("bitcast<u32>({})", self.load(view, at));
        }
        if view.is_packed {
            let name = self.bind(view.buffer, false, Bound::Packed(view.dtype));
            return format!("{name}_at({at})");
        }
        let name = self.bind(view.buffer, false, Bound::Words(words_of(view.dtype)));
        format!("{name}[{at}]")
    }

    /// The statement that writes the words of an element.
    pub(crate) fn store_words(&mut self, view: &View, at: &str, value: &str) -> String {
        if view.is_half {
            return self.store(view, at, &format!("bitcast<f32>({value})"));
        }
        let name = self.bind(view.buffer, true, Bound::Words(words_of(view.dtype)));
        format!("{name}[{at}] = {value};")
    }

    /// The buffer of checks.
    pub(crate) fn checks(&mut self, buffer: DeviceBufferId) -> String {
        self.bind(buffer, true, Bound::Atomics)
    }

    /// Adds a line to the body.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.body.push_str("    ");
        self.body.push_str(text.as_ref());
        self.body.push('\n');
    }

    /// The bindings and the text, with workgroups of so many invocations.
    pub(crate) fn finish(self, workgroup: [u32; 3]) -> (Vec<Binding>, String) {
        let mut text = String::new();
        for (at, (binding, bound)) in self.bindings.iter().enumerate() {
            let access = if binding.is_written { "read_write" } else { "read" };
            let element = match bound {
                Bound::As(kind) => kind.stored(),
                Bound::Words(1) | Bound::Packed(_) => "u32",
                Bound::Words(_) => "vec2<u32>",
                Bound::Atomics => "atomic<u32>",
                Bound::Halves => "f16",
            };
            _ = writeln!(text, "@group(0) @binding({at}) var<storage, {access}> b{at}: array<{element}>;");
            if let Bound::Packed(dtype) = bound {
                text.push_str(&unpacking(&format!("b{at}"), *dtype));
            }
        }
        text.push_str(&self.globals);
        let all = [functions::FUNCTIONS, special_functions::FUNCTIONS, complex_functions::FUNCTIONS].concat();
        let mut needed = vec![false; all.len()];
        let bindings = text.clone();
        let mut texts: Vec<&str> = vec![&bindings, &self.globals, &self.body];
        while let Some(it) = texts.pop() {
            for (at, (name, function)) in all.iter().enumerate() {
                if !needed[at] && calls(it, name) {
                    needed[at] = true;
                    texts.push(function);
                }
            }
        }
        for ((_, function), needed) in all.iter().zip(needed) {
            if needed {
                text.push_str(function);
            }
        }
        let [x, y, z] = workgroup;
        let has_subgroups = self.body.contains("subgroupAdd(");
        let subgroups = match has_subgroups {
            true => ", @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) n_subgroups: u32",
            false => "",
        };
        _ = write!(
            text,
            "@compute @workgroup_size({x}, {y}, {z})\nfn main(@builtin(workgroup_id) group: vec3<u32>, \
             @builtin(local_invocation_id) local: vec3<u32>{subgroups}) {{\n{}}}\n",
            self.body
        );
        let has_halves = self.has_halves || self.bindings.iter().any(|it| it.1 == Bound::Halves);
        let extensions = [(has_halves, "enable f16;\n"), (has_subgroups, ENABLE_SUBGROUPS)];
        for (_, extension) in extensions.into_iter().filter(|it| it.0) {
            text.insert_str(0, extension);
        }
        (self.bindings.into_iter().map(|(it, _)| it).collect(), text)
    }
}

/// The function of a buffer of packed elements that gives the word of one, as it would be if they were not packed.
fn unpacking(buffer: &str, dtype: DType) -> String {
    let (per_word, bits) = (4 / dtype.size(), 8 * dtype.size());
    let shifted = format!("({buffer}[at / {per_word}u] >> (at % {per_word}u * {bits}u))");
    let word = match dtype {
        DType::Float16 => format!("half_bits({shifted})"),
        DType::BFloat16 => format!("({shifted} << 16u)"),
        DType::Int8 | DType::Int16 => {
            format!("bitcast<u32>(bitcast<i32>({shifted} << {}u) >> {}u)", 32 - bits, 32 - bits)
        }
        _ => format!("({shifted} & {}u)", (1u32 << bits) - 1),
    };
    format!("fn {buffer}_at(at: u32) -> u32 {{ return {word}; }}\n")
}

/// Whether a text calls a function: it has the name with a bracket behind it, and no letter before it.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_begin = !text[..at].ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
        is_begin && text[at + name.len()..].starts_with('(')
    })
}

fn words_of(dtype: DType) -> usize {
    match crate::program::words(dtype) {
        Some(n) => n,
        None => unreachable!("a shader moves {}, which has no words", dtype.name()),
    }
}

fn kind_of(dtype: DType) -> Kind {
    match Kind::of(dtype) {
        Some(kind) => kind,
        None => unreachable!("a shader computes with {}, which has no registers", dtype.name()),
    }
}

/// A number as WGSL writes it.
pub(crate) fn float(value: f32) -> String {
    // The shortest digits of the largest numbers are more than these, and refused by browsers.
    if value.abs() < 3.4e38 { format!("{value:?}f") } else { format!("number({:#x}u)", value.to_bits()) }
}

/// An integer as WGSL writes it.
pub(crate) fn int(value: i32) -> String {
    if value == i32::MIN { "bitcast<i32>(0x80000000u)".to_owned() } else { format!("({value}i)") }
}

/// The two words of an integer.
pub(crate) fn long(value: i64) -> String {
    format!("vec2<u32>({}u, {}u)", value as u32, (value >> 32) as u32)
}

/// The dimensions of several tensors of the same sizes, with those joined that lie behind each other in all of them.
pub(crate) fn collapsed(views: &mut [&mut View]) {
    let rank = views.first().map_or(0, |it| it.sizes.len());
    for dim in (0..rank).rev() {
        if views[0].sizes[dim] == 1 {
            for it in &mut *views {
                it.sizes.remove(dim);
                it.strides.remove(dim);
            }
        }
    }
    for dim in (1..views.first().map_or(0, |it| it.sizes.len())).rev() {
        let joins = views.iter().all(|it| it.strides[dim - 1] == it.strides[dim] * it.sizes[dim]);
        if joins {
            for it in &mut *views {
                it.sizes[dim - 1] *= it.sizes[dim];
                it.strides[dim - 1] = it.strides[dim];
                it.sizes.remove(dim);
                it.strides.remove(dim);
            }
        }
    }
}

/// The coordinates of the element `index` of these sizes in row-major order: statements, and the names of the coordinates.
pub(crate) fn coordinates(shader: &mut Shader, index: &str, sizes: &[usize], prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = index.to_owned();
    for (dim, size) in sizes.iter().enumerate().rev() {
        // Of no elements there are no coordinates, but there is a text.
        let (name, size) = (format!("{prefix}{dim}"), size.max(&1));
        if dim == 0 {
            shader.line(format!("let {name} = {rest};"));
        } else {
            shader.line(format!("let {name} = {rest} % {size}u;"));
            let next = format!("{prefix}r{dim}");
            shader.line(format!("let {next} = {rest} / {size}u;"));
            rest = next;
        }
        names.push(name);
    }
    names.reverse();
    names
}
