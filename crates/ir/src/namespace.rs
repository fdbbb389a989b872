//! Names of nodes, by FX's rules. A graph asks for each; nothing else makes names.

use crate::Str;
use crate::illegal_names::ILLEGAL_NAMES;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Gives each node a name of its own, by the rules of `torch.fx.graph._Namespace`.
///
/// A name once given is never given again, not even after its node was erased.
///
/// ```
/// use tracefx_ir::Namespace;
/// let mut names = Namespace::default();
/// let given: Vec<_> = ["add", "add", "sum", "3d conv", ""].iter().map(|it| names.create_name(it)).collect();
/// assert_eq!(given.join(" "), "add add_1 sum_1 _3d_conv _unnamed");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    used: FxHashSet<Str>,
    bases: FxHashMap<Box<str>, Base>,
    /// What was given since somebody asked to know.
    log: Option<Vec<Naming>>,
    /// Where names are put together.
    scratch: String,
}

/// What is known of the suffixes of a base.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    /// The suffix that was given last, zero for none.
    last: u128,
    /// The largest `k` such that `base_1` to `base_k` are all used. Names are never freed, so the search for a free suffix
    /// may begin there; without it, many clashes of one base would take quadratic time.
    dense: u128,
}

/// A name that was given, and what is known of the suffixes of its base since then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The name.
    pub name: Str,
    /// The name without its suffix, and the suffix that was given last, unless the name was taken as it was.
    pub suffix: Option<(Box<str>, u128)>,
}

impl Namespace {
    /// The names that are never given: Python's keywords and builtins, and the globals of generated code. Sorted.
    pub const ILLEGAL_NAMES: &[&str] = ILLEGAL_NAMES;

    /// A free name, as close to the candidate as the rules allow.
    pub fn create_name(&mut self, candidate: &str) -> Str {
        let wanted = legal_identifier(candidate);
        let (stem, suffix) = split_suffix(&wanted);
        let mut base = self.bases.get(stem).copied().unwrap_or_default();
        let mut candidate = std::mem::take(&mut self.scratch);
        candidate.clear();
        candidate.push_str(&wanted);
        let mut num = match suffix {
            Some(num) if !self.used.contains(&*candidate) => num,
            _ => {
                let mut num = base.last;
                if is_illegal(&candidate) {
                    num += 1;
                    number(&mut candidate, wanted.len(), num);
                }
                num
            }
        };
        if self.used.contains(&*candidate) {
            let starts_dense = num <= base.dense;
            num = num.max(base.dense);
            loop {
                num += 1;
                number(&mut candidate, stem.len(), num);
                if !self.used.contains(&*candidate) {
                    break;
                }
            }
            if starts_dense {
                base.dense = num;
            }
        }
        let name = Str::from(&*candidate);
        self.scratch = candidate;
        self.used.insert(Str::clone(&name));
        if let Some(log) = &mut self.log {
            log.push(Naming { name: Str::clone(&name), suffix: Some((stem.into(), num)) });
        }
        base.last = num;
        match self.bases.get_mut(stem) {
            Some(known) => *known = base,
            None => {
                self.bases.insert(stem.into(), base);
            }
        }
        name
    }

    /// How many names were given.
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Whether no name was given.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Begins to note the names that are given.
    pub(crate) fn begin_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The names that were given since the graph was tracked; nothing where it is not.
    pub fn log(&self) -> Option<&[Naming]> {
        self.log.as_deref()
    }

    /// Makes room for this many more names.
    pub(crate) fn reserve_room(&mut self, additional: usize) {
        self.used.reserve(additional);
    }

    /// Takes names, and notes for each base the suffix that was given last.
    pub(crate) fn take(
        &mut self,
        used: impl IntoIterator<Item = Str>,
        suffixes: impl IntoIterator<Item = (Box<str>, u128)>,
    ) {
        self.used.extend(used);
        for (base, suffix) in suffixes {
            self.bases.entry(base).or_default().last = suffix;
        }
    }

    /// The names that were given, in no particular order.
    pub fn used(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|it| &**it)
    }

    /// For each base the suffix that was given last, zero for none, in no particular order.
    pub fn suffixes(&self) -> impl Iterator<Item = (&str, u128)> {
        self.bases.iter().map(|(base, known)| (&**base, known.last))
    }

    /// Takes exactly this name; `false` where it is taken already.
    pub fn reserve(&mut self, name: impl Into<Str>) -> bool {
        let name = name.into();
        let is_new = self.used.insert(Str::clone(&name));
        if is_new && let Some(log) = &mut self.log {
            log.push(Naming { name, suffix: None });
        }
        is_new
    }

    /// Whether this name was given already.
    pub fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }
}

/// Makes `base_12` of what begins with a base of this length, and 12.
fn number(name: &mut String, base: usize, num: u128) {
    let mut digits = itoa::Buffer::new();
    // Numbers of 128 bits are much slower to write, and hardly ever needed.
    let digits = match u64::try_from(num) {
        Ok(num) => digits.format(num),
        Err(_) => digits.format(num),
    };
    name.truncate(base);
    name.push('_');
    name.push_str(digits);
}

fn is_illegal(name: &str) -> bool {
    static ILLEGAL: LazyLock<FxHashSet<&str>> = LazyLock::new(|| ILLEGAL_NAMES.iter().copied().collect());
    ILLEGAL.contains(name)
}

/// The candidate with each run of characters that no identifier has replaced by one underscore.
fn legal_identifier(candidate: &str) -> Cow<'_, str> {
    let is_legal = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    if candidate.bytes().all(is_legal) && candidate.bytes().next().is_some_and(|it| !it.is_ascii_digit()) {
        return candidate.into();
    }
    let mut res = String::with_capacity(candidate.len());
    let mut in_run = false;
    for c in candidate.chars() {
        let is_legal = c.is_ascii_alphanumeric() || c == '_';
        if is_legal {
            res.push(c);
        } else if !in_run {
            res.push('_');
        }
        in_run = !is_legal;
    }
    if res.is_empty() {
        res.push_str("_unnamed");
    }
    if res.starts_with(|c: char| c.is_ascii_digit()) {
        res.insert(0, '_');
    }
    res.into()
}

/// `a_12` as `a` and 12; a suffix of more digits than 128 bits hold counts as part of the name.
fn split_suffix(name: &str) -> (&str, Option<u128>) {
    match name.rsplit_once('_') {
        Some((base, digits))
            if !base.is_empty() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            // Numbers of 128 bits are much slower to read.
            match digits.parse::<u64>().map(u128::from).or_else(|_| digits.parse::<u128>()) {
                Ok(num) if num < u128::MAX / 2 => (base, Some(num)),
                Ok(_) | Err(_) => (name, None),
            }
        }
        Some(_) | None => (name, None),
    }
}

/// `PascalCase` as `pascal_case`; `ALL_CAPS` as `all_caps`.
pub(crate) fn snake_case(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|it| it.is_ascii_uppercase()) {
        return text.into();
    }
    let mut res = String::with_capacity(text.len() + 4);
    let mut after_lower = false;
    for c in text.chars() {
        if after_lower && c.is_ascii_uppercase() {
            res.push('_');
        }
        res.extend(c.to_lowercase());
        after_lower = c.is_ascii_lowercase();
    }
    res.into()
}
