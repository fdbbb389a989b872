//! What completes the command in a shell: the table of `tracefx_engine::command`, written out by `clap_complete`. Neither command has a
//! parser of clap's, so that the scripts are printed here, once for both.

use super::quoted;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::{Shell, generate};
use std::fmt::Write;
use tracefx_engine::command::{ABOUT, CommandOption, DEVICES, GENERAL, OPTIONS, SHELLS, VERBS, Verb};
use tracefx_engine::{Mode, Precision};

/// The most characters of a literal, each of which may be written as two.
const MAX_PIECE: usize = 90;

/// `bindings/completions.ts`.
pub(super) fn typescript() -> String {
    let scripts =
        SHELLS.iter().map(|it| format!("  {it}: [\n{}  ].join(\"\"),\n", pieces(&script(it)))).collect::<String>();
    format!("/** What completes the command, by shell. */\nexport const COMPLETIONS = {{\n{scripts}}} as const;\n")
}

/// A text as string literals of one line each, of which long lines of it take several.
fn pieces(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let chars: Vec<char> = line.chars().collect();
        for piece in chars.chunks(MAX_PIECE) {
            writeln!(out, "    {},", quoted(&piece.iter().collect::<String>())).expect("writing to a string succeeds");
        }
    }
    out
}

/// `crates/cli/src/completions.rs`.
pub(super) fn rust() -> String {
    let mut out = String::from("//! What completes the command, by shell.\n\n");
    out.push_str("/// The shells and their scripts.\npub(crate) const COMPLETIONS: &[(&str, &str)] = &[\n");
    for shell in SHELLS {
        let text = script(shell);
        assert!(!text.contains("\"##"), "the script of {shell} ends the literal");
        writeln!(out, "    (\n        {shell:?},\n        r##\"{text}\"##,\n    ),")
            .expect("writing to a string succeeds");
    }
    out.push_str("];\n");
    out
}

fn script(shell: &str) -> String {
    let shell: Shell = shell.parse().expect("clap knows the shell");
    let mut bytes = Vec::new();
    generate(shell, &mut command(), "tracefx", &mut bytes);
    String::from_utf8(bytes).expect("a script is text")
}

fn command() -> Command {
    let bare = |it: Command| it.disable_help_flag(true).disable_version_flag(true).disable_help_subcommand(true);
    let general = || option_args(GENERAL);
    let verb = |it: &Verb| {
        let files = it.files.iter().chain(it.optional).map(|name| {
            let arg = Arg::new(*name);
            if *name == "SHELL" {
                arg.value_parser(PossibleValuesParser::new(SHELLS.iter().copied()))
            } else {
                arg.value_hint(ValueHint::FilePath)
            }
        });
        bare(Command::new(it.name)).about(it.about).args(files).args(option_args(it.options)).args(general())
    };
    bare(Command::new("tracefx"))
        .about(ABOUT)
        .args(option_args(&["help", "version"]))
        .subcommands(VERBS.iter().map(verb))
}

fn option_args(names: &[&str]) -> Vec<Arg> {
    OPTIONS.iter().filter(|it| names.contains(&it.name)).map(option_arg).collect()
}

fn option_arg(option: &CommandOption) -> Arg {
    let arg = Arg::new(option.name).long(option.name).help(option.about);
    let arg = match option.name {
        "help" => arg.short('h'),
        "version" => arg.short('V'),
        _ => arg,
    };
    let Some(value) = option.value else { return arg.action(ArgAction::SetTrue) };
    let arg = arg.value_name(value).action(if option.is_repeated { ArgAction::Append } else { ArgAction::Set });
    let among = |names: &[&'static str]| PossibleValuesParser::new(names.iter().copied());
    match value {
        "FILE" => arg.value_hint(ValueHint::FilePath),
        "MODE" => arg.value_parser(among(Mode::NAMES)),
        "PRECISION" => arg.value_parser(among(Precision::NAMES)),
        "DEVICE" => arg.value_parser(among(DEVICES)),
        "FORMAT" => arg.value_parser(among(&["pt2", "fxg"])),
        _ => arg,
    }
}
