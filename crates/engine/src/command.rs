//! The command line of `tracefx`, which the native command and `npx tracefx` share: their verbs, options and messages are
//! this table, which is printed for TypeScript.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What the command is for.
pub const ABOUT: &str =
    "Opens, inspects, runs and converts programs that PyTorch exported. Opening a file runs no code of it.";

/// Something that the command does.
#[derive(Clone, Copy, Debug)]
pub struct Verb {
    /// The word for it.
    pub name: &'static str,
    /// The files that it takes, in order.
    pub files: &'static [&'static str],
    /// The files that may follow.
    pub optional: &'static [&'static str],
    /// The options that it takes, beside those of all verbs.
    pub options: &'static [&'static str],
    /// The options without which it does nothing.
    pub required: &'static [&'static str],
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// An option, without the two dashes.
#[derive(Clone, Copy, Debug)]
pub struct CommandOption {
    /// Its name.
    pub name: &'static str,
    /// What its value is called, if it has one.
    pub value: Option<&'static str>,
    /// Whether it may be given several times.
    pub is_repeated: bool,
    /// What it does.
    pub about: &'static str,
}

/// The verbs.
pub const VERBS: &[Verb] = &[
    Verb {
        name: "inspect",
        files: &["FILE"],
        optional: &[],
        options: &["decompose"],
        required: &[],
        about: "shows the graph, the signature, the constraints, the sizes, and which operators are supported",
    },
    Verb {
        name: "run",
        files: &["FILE"],
        optional: &[],
        options: &["inputs", "outputs", "repeat", "mode", "precision", "device"],
        required: &["inputs", "outputs"],
        about: "runs the program on the tensors of a .safetensors file",
    },
    Verb {
        name: "explain",
        files: &["FILE"],
        optional: &[],
        options: &["inputs", "precision", "device"],
        required: &["inputs"],
        about: "shows the steps that a run of the program is compiled to",
    },
    Verb {
        name: "profile",
        files: &["FILE"],
        optional: &[],
        options: &["inputs", "precision", "device", "repeat", "trace"],
        required: &["inputs"],
        about: "runs the program, and shows how long each step takes",
    },
    Verb {
        name: "convert",
        files: &["INPUT", "OUTPUT"],
        optional: &[],
        options: &["decompose", "to"],
        required: &[],
        about: "writes the program as an archive of PyTorch (.pt2) or in the byte format of tracefx (.fxg)",
    },
    Verb {
        name: "onnx",
        files: &["INPUT", "OUTPUT"],
        optional: &[],
        options: &[],
        required: &[],
        about: "writes the program as an ONNX model, in terms of core operators where it has others; of the native command alone",
    },
    Verb {
        name: "compile",
        files: &["INPUT", "OUTPUT"],
        optional: &[],
        options: &["inputs", "precision"],
        required: &[],
        about: "writes the program with a plan for the sizes of its inputs, which `tracefx/runtime` runs without the engine (.fxg)",
    },
    Verb {
        name: "joint",
        files: &["INPUT", "OUTPUT"],
        optional: &[],
        options: &["loss-index", "to"],
        required: &[],
        about: "writes the joint program of a loss and its gradients, which a training step runs",
    },
    Verb {
        name: "explore",
        files: &["FILE"],
        optional: &["OTHER"],
        options: &["port"],
        required: &[],
        about: "shows the program in a browser, or how two differ; of npx tracefx alone: it serves a page to this machine until it is stopped",
    },
    Verb {
        name: "diff",
        files: &["FILE", "OTHER"],
        optional: &[],
        options: &[],
        required: &[],
        about: "shows where two programs differ: nodes, signature, constraints, parameters, buffers, constants",
    },
    Verb {
        name: "bench",
        files: &["FILE"],
        optional: &[],
        options: &["inputs", "precision", "device", "repeat", "threads"],
        required: &[],
        about: "times the program: by its plan and node by node, on one thread and on several; on zeros where no inputs are given",
    },
    Verb {
        name: "doctor",
        files: &[],
        optional: &[],
        options: &[],
        required: &[],
        about: "shows what this machine has for running programs, what is missing, and how to get it",
    },
    Verb {
        name: "completions",
        files: &["SHELL"],
        optional: &[],
        options: &[],
        required: &[],
        about: "prints what completes this command in a shell: bash, zsh, fish or powershell",
    },
];

/// The options.
pub const OPTIONS: &[CommandOption] = &[
    CommandOption {
        name: "decompose",
        value: None,
        is_repeated: false,
        about: "puts the program in terms of core operators, without writes to tensors",
    },
    CommandOption {
        name: "inputs",
        value: Some("FILE"),
        is_repeated: false,
        about: "the inputs: in0, in1… by position, or the names that inspect shows",
    },
    CommandOption {
        name: "outputs",
        value: Some("FILE"),
        is_repeated: false,
        about: "where the outputs go, as out0, out1…",
    },
    CommandOption {
        name: "repeat",
        value: Some("N"),
        is_repeated: false,
        about: "runs this often, and tells the fastest time and the median, or that of each step; outputs are those of the first run; bench takes seconds without it",
    },
    CommandOption {
        name: "threads",
        value: Some("N"),
        is_repeated: false,
        about: "the most threads of a run; as many as the process may use, where it is not given",
    },
    CommandOption {
        name: "mode",
        value: Some("MODE"),
        is_repeated: false,
        about: "plan, the default: steps, memory and constant weights are made ready in the first run; or interpret, node by node",
    },
    CommandOption {
        name: "precision",
        value: Some("PRECISION"),
        is_repeated: false,
        about: "fast, the default: a plan may change the last bits of results; or strict: it gives what interpret gives",
    },
    CommandOption {
        name: "device",
        value: Some("DEVICE"),
        is_repeated: false,
        about: "cpu, the default; or gpu (in Node by the package webgpu, and not for profile): what has no shader runs on the CPU",
    },
    CommandOption {
        name: "trace",
        value: Some("FILE"),
        is_repeated: false,
        about: "where the steps go in Chrome's trace format, which chrome://tracing and Perfetto open",
    },
    CommandOption {
        name: "to",
        value: Some("FORMAT"),
        is_repeated: false,
        about: "pt2 or fxg, where the ending of OUTPUT does not say it",
    },
    CommandOption {
        name: "loss-index",
        value: Some("N"),
        is_repeated: false,
        about: "which of the results of the graph is the loss: 0 is the first, and the default",
    },
    CommandOption {
        name: "port",
        value: Some("N"),
        is_repeated: false,
        about: "the port of the page; a free one, where it is not given",
    },
    CommandOption {
        name: "limit",
        value: Some("NAME=N"),
        is_repeated: true,
        about: "what a file or a run may ask for, such as archive_bytes, input_bytes, loop_steps or milliseconds",
    },
    CommandOption { name: "json", value: None, is_repeated: false, about: "prints JSON for machines, errors included" },
    CommandOption { name: "help", value: None, is_repeated: false, about: "shows this" },
    CommandOption { name: "version", value: None, is_repeated: false, about: "shows the version" },
];

/// The devices that plans run on, the default first.
pub const DEVICES: &[&str] = &["cpu", "gpu"];

/// The shells that there are completions for.
pub const SHELLS: &[&str] = &["bash", "zsh", "fish", "powershell"];

/// What `doctor --json` tells, in order; docs/command.md says what each is. Systems and processors have the names of
/// [`std::env::consts`].
pub const FINDINGS: &[&str] =
    &["version", "command", "node", "os", "arch", "processors", "threads", "vectors", "gpu", "missing", "is_ready"];

/// The options that all verbs take.
pub const GENERAL: &[&str] = &["limit", "json", "help", "version"];

/// What `--help` shows.
pub fn usage() -> String {
    let verbs = VERBS.iter().map(|it| {
        let optional = it.optional.iter().map(|name| format!(" [{name}]")).collect::<String>();
        (format!("{} {}{optional}", it.name, it.files.join(" ")).trim_end().to_string(), it.about.to_string())
    });
    let options = OPTIONS.iter().map(|it| {
        let name = it.value.map_or(format!("--{}", it.name), |value| format!("--{} {value}", it.name));
        let verbs: Vec<&str> = VERBS.iter().filter(|verb| verb.options.contains(&it.name)).map(|it| it.name).collect();
        let of = if verbs.is_empty() { String::new() } else { format!("{}: ", verbs.join(", ")) };
        (name, format!("{of}{}", it.about))
    });
    let table = |rows: Vec<(String, String)>| {
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        rows.iter().map(|(name, about)| format!("  {name:width$}  {about}\n")).collect::<String>()
    };
    format!(
        "{ABOUT}\n\nUsage: tracefx VERB [FILE…] [OPTIONS]\n\nVerbs:\n{}\nOptions:\n{}\nExit codes: 0 done, 1 the program or \
         its inputs were refused, 2 the command line was wrong. Of diff: 0 the programs are the same, 1 they differ, 2 anything \
         else.",
        table(verbs.collect()),
        table(options.collect())
    )
}

/// A command line that was read.
#[derive(Debug)]
pub struct CommandLine {
    /// What is to be done.
    pub verb: &'static Verb,
    /// Its files: as many as it takes, and those that may follow.
    pub files: Vec<OsString>,
    options: BTreeMap<&'static str, Vec<OsString>>,
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// What can be asked.
    Help,
    /// The version.
    Version,
    /// Something to do.
    Do(CommandLine),
}

impl CommandLine {
    /// Reads the arguments after the name of the command.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Asked, String> {
        let mut words: Vec<OsString> = Vec::new();
        let mut options: BTreeMap<&'static str, Vec<OsString>> = BTreeMap::new();
        let mut args = args.into_iter();
        let mut are_options_over = false;
        while let Some(arg) = args.next() {
            let text = arg.to_str().unwrap_or("");
            if are_options_over || !text.starts_with('-') || text == "-" {
                words.push(arg);
                continue;
            }
            if text == "--" {
                are_options_over = true;
                continue;
            }
            let (given, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text, None),
            };
            let name = match given {
                "-h" => "help",
                "-V" => "version",
                _ => given.strip_prefix("--").unwrap_or(""),
            };
            let Some(option) = OPTIONS.iter().find(|it| it.name == name) else {
                return Err(format!("there is no option {given}"));
            };
            let value = match (option.value, value) {
                (None, None) => OsString::new(),
                (None, Some(_)) => return Err(format!("--{name} takes no value")),
                (Some(_), Some(value)) => value,
                (Some(called), None) => args.next().ok_or_else(|| format!("--{name} needs a value, {called}"))?,
            };
            let given = options.entry(option.name).or_default();
            if !given.is_empty() && !option.is_repeated {
                return Err(format!("--{name} is given twice"));
            }
            given.push(value);
        }
        if options.contains_key("help") {
            return Ok(Asked::Help);
        }
        if options.contains_key("version") {
            return Ok(Asked::Version);
        }
        let mut words = words.into_iter();
        let Some(word) = words.next() else { return Err("a verb is missing".to_string()) };
        let word = word.to_string_lossy();
        let Some(verb) = VERBS.iter().find(|it| it.name == word) else {
            return Err(format!("there is no verb {word}"));
        };
        let files: Vec<OsString> = words.collect();
        let most = verb.files.len() + verb.optional.len();
        if files.len() < verb.files.len() || files.len() > most {
            let optional = verb.optional.iter().map(|it| format!("[{it}]"));
            let wanted: Vec<_> = verb.files.iter().map(|it| (*it).to_string()).chain(optional).collect();
            let wanted = if wanted.is_empty() { "no files".to_string() } else { wanted.join(" and ") };
            return Err(format!("{} takes {wanted}, and got {} arguments", verb.name, files.len()));
        }
        if let Some(stray) = options.keys().find(|it| !verb.options.contains(it) && !GENERAL.contains(it)) {
            return Err(format!("{} has no option --{stray}", verb.name));
        }
        if let Some(missing) = verb.required.iter().find(|it| !options.contains_key(*it)) {
            return Err(format!("{} needs --{missing}", verb.name));
        }
        Ok(Asked::Do(CommandLine { verb, files, options }))
    }

    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The value of an option that is given.
    pub fn value(&self, name: &str) -> Option<&OsString> {
        self.options.get(name)?.first()
    }

    /// The value of an option that is a number from `least` on, or `default` where it is not given.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn number(&self, name: &str, least: u64, default: u64) -> Result<u64, String> {
        let Some(text) = self.value(name) else { return Ok(default) };
        number(&text.to_string_lossy())
            .filter(|it| *it >= least)
            .ok_or_else(|| format!("--{name} needs a number from {least} on"))
    }

    /// The limits that are given, by name.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn limits(&self) -> Result<Vec<(String, u64)>, String> {
        let given = self.options.get("limit").map_or(&[][..], Vec::as_slice);
        let limit = |text: &OsString| {
            let text = text.to_string_lossy();
            let (name, value) = text.split_once('=')?;
            Some((name.to_string(), number(value)?))
        };
        let limits = given.iter().map(|it| limit(it).ok_or_else(|| "--limit needs NAME=N".to_string()));
        limits.collect()
    }

    /// How a program is run.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn mode(&self) -> Result<crate::Mode, String> {
        self.named("mode", crate::Mode::NAMES, crate::Mode::named)
    }

    /// What a plan may change in the numbers.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn precision(&self) -> Result<crate::Precision, String> {
        self.named("precision", crate::Precision::NAMES, crate::Precision::named)
    }

    /// The device that plans run on.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn device(&self) -> Result<&'static str, String> {
        let Some(name) = self.value("device") else { return Ok(DEVICES[0]) };
        let name = name.to_string_lossy();
        let known = DEVICES.iter().find(|it| **it == name).copied();
        known.ok_or_else(|| format!("there is no device {name}: --device is {}", DEVICES.join(" or ")))
    }

    /// The shell that completions are for.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn shell(&self) -> Result<&'static str, String> {
        let name = self.files[0].to_string_lossy();
        let known = SHELLS.iter().find(|it| **it == name).copied();
        known.ok_or_else(|| format!("there are no completions for {name}: SHELL is {}", SHELLS.join(", ")))
    }

    fn named<T: Default>(
        &self,
        option: &str,
        names: &[&str],
        named: fn(&str) -> tracefx_core::Result<T>,
    ) -> Result<T, String> {
        let Some(name) = self.value(option) else { return Ok(T::default()) };
        named(&name.to_string_lossy())
            .map_err(|problem| format!("{}: --{option} is {}", problem.message(), names.join(" or ")))
    }

    /// The format of the file to write: `--to`, or else its ending.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn format(&self, output: &str) -> Result<crate::Format, String> {
        let given = self.value("to").map(|it| it.to_string_lossy());
        match given.as_deref() {
            Some("pt2") => Ok(crate::Format::Pt2),
            Some("fxg") => Ok(crate::Format::Fxg),
            Some(other) => Err(format!("there is no format {other}: --to is pt2 or fxg")),
            None if output.ends_with(".pt2") => Ok(crate::Format::Pt2),
            None if output.ends_with(".fxg") => Ok(crate::Format::Fxg),
            None => Err(format!("{output} ends neither in .pt2 nor in .fxg: say --to pt2 or --to fxg")),
        }
    }
}

/// A number as both commands read it: digits, of which JavaScript can hold the value.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_number && *it < 1 << 53)
}
