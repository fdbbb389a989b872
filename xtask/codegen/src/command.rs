//! `command.ts`: the command line of `tracefx`, and the limits of what it reads.

use super::{array, quoted};
use tracefx_engine::command::{CommandOption, DEVICES, FINDINGS, GENERAL, OPTIONS, SHELLS, VERBS, Verb, usage};
use tracefx_engine::{Limits, Mode, Precision, RunLimits};

pub(super) fn body() -> String {
    let words = |them: &[&str]| format!("[{}]", them.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "));
    let verb = |it: &Verb| {
        format!(
            "  {{ name: {}, files: {}, optional: {}, options: {}, required: {} }},\n",
            quoted(it.name),
            words(it.files),
            words(it.optional),
            words(it.options),
            words(it.required)
        )
    };
    let option = |it: &CommandOption| {
        let value = it.value.map_or("undefined".to_string(), quoted);
        format!("  {{ name: {}, value: {value}, isRepeated: {} }},\n", quoted(it.name), it.is_repeated)
    };
    format!(
        "/** Something that the command does. */
export interface Verb {{
  readonly name: string;
  readonly files: readonly string[];
  /** The files that may follow. */
  readonly optional: readonly string[];
  readonly options: readonly string[];
  readonly required: readonly string[];
}}

/** An option, without the two dashes. */
export interface CommandOption {{
  readonly name: string;
  /** What its value is called, if it has one. */
  readonly value: string | undefined;
  readonly isRepeated: boolean;
}}

/** The verbs. */
export const VERBS: readonly Verb[] = [
{}];

/** The options. */
export const OPTIONS: readonly CommandOption[] = [
{}];

/** The options that all verbs take. */
export const GENERAL: readonly string[] = {};

/** What `--help` shows. */
export const USAGE = `{}`;

/** The limits of files that `--limit` changes. */
export const FILE_LIMITS: readonly string[] = {};

/** The limits of runs that it changes. */
export const RUN_LIMITS: readonly string[] = {};

/** The ways to run a program, the default first. */
export const RUN_MODES = {} as const;

/** What a plan may change in the numbers, the default first. */
export const PRECISIONS = {} as const;

/** The devices that plans run on, the default first. */
export const DEVICES = {} as const;

/** The shells that there are completions for. */
export const SHELLS = {} as const;

/** What `doctor --json` tells, in order. */
export const FINDINGS = {} as const;

/** How many bytes are read of what does not say before how long it is, unless `limits` has another `stream_bytes`. */
export const STREAM_BYTES = {};
",
        VERBS.iter().map(verb).collect::<String>(),
        OPTIONS.iter().map(option).collect::<String>(),
        words(GENERAL),
        usage().replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${"),
        array(Limits::NAMES, ""),
        array(RunLimits::NAMES, ""),
        words(Mode::NAMES),
        words(Precision::NAMES),
        words(DEVICES),
        words(SHELLS),
        array(FINDINGS, ""),
        Limits::default().stream_bytes,
    )
}
