/**
 * Reads the command line by the table that the native command has, too.
 *
 * @module
 */
import {
  DEVICES,
  GENERAL,
  OPTIONS,
  PRECISIONS,
  RUN_MODES,
  SHELLS,
  type Verb,
  VERBS,
} from "../../../bindings/command.ts";

/** A command line that says something impossible. */
export class CommandLineError extends Error {}

/** A command line that was read. */
export interface CommandLine {
  readonly verb: Verb;
  /** As many as the verb takes, and those that may follow. */
  readonly files: readonly string[];
  readonly options: ReadonlyMap<string, readonly string[]>;
}

const SHORT: Readonly<Record<string, string>> = { "-h": "--help", "-V": "--version" };

/** Reads the arguments after the name of the command. */
export function readCommandLine(args: readonly string[]): CommandLine | "help" | "version" {
  const words: string[] = [];
  const options = new Map<string, string[]>();
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (arg === "--") {
      words.push(...args.slice(at + 1));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      words.push(arg);
      continue;
    }
    const equals = arg.indexOf("=");
    const given = equals < 0 ? arg : arg.slice(0, equals);
    const long = SHORT[given] ?? given;
    const option = OPTIONS.find((it) => `--${it.name}` === long);
    if (option === undefined) throw new CommandLineError(`there is no option ${given}`);
    const { name } = option;
    let value = equals < 0 ? undefined : arg.slice(equals + 1);
    if (option.value === undefined) {
      if (value !== undefined) throw new CommandLineError(`--${name} takes no value`);
      value = "";
    } else {
      value ??= args[++at];
      if (value === undefined) throw new CommandLineError(`--${name} needs a value, ${option.value}`);
    }
    const values = options.get(name) ?? [];
    if (values.length > 0 && !option.isRepeated) throw new CommandLineError(`--${name} is given twice`);
    options.set(name, [...values, value]);
  }
  if (options.has("help")) return "help";
  if (options.has("version")) return "version";
  const [word, ...files] = words;
  if (word === undefined) throw new CommandLineError("a verb is missing");
  const verb = VERBS.find((it) => it.name === word);
  if (verb === undefined) throw new CommandLineError(`there is no verb ${word}`);
  const wanted = [...verb.files, ...verb.optional.map((it) => `[${it}]`)];
  if (files.length < verb.files.length || files.length > wanted.length) {
    const told = wanted.length === 0 ? "no files" : wanted.join(" and ");
    throw new CommandLineError(`${word} takes ${told}, and got ${files.length} arguments`);
  }
  const stray = [...options.keys()].toSorted().find((it) => !verb.options.includes(it) && !GENERAL.includes(it));
  if (stray !== undefined) throw new CommandLineError(`${word} has no option --${stray}`);
  const missing = verb.required.find((it) => !options.has(it));
  if (missing !== undefined) throw new CommandLineError(`${word} needs --${missing}`);
  return { verb, files, options };
}

/** The value of an option that is a number from `least` on, to `most` where that is given; or `otherwise` where it is not given. */
export function numberOf(
  { options }: CommandLine,
  name: string,
  least: number,
  otherwise: number,
  most?: number,
): number {
  const [text] = options.get(name) ?? [];
  if (text === undefined) return otherwise;
  const value = number(text);
  if (value === undefined || value < least || value > (most ?? value)) {
    throw new CommandLineError(`--${name} needs a number from ${least} ${most === undefined ? "on" : `to ${most}`}`);
  }
  return value;
}

/** The limits that are given, by name. */
export function limitsOf({ options }: CommandLine): Record<string, number> {
  const limits: Record<string, number> = {};
  for (const text of options.get("limit") ?? []) {
    const equals = text.indexOf("=");
    const value = equals < 0 ? undefined : number(text.slice(equals + 1));
    if (value === undefined) throw new CommandLineError("--limit needs NAME=N");
    limits[text.slice(0, equals)] = value;
  }
  return limits;
}

/** How a program is run. */
export function modeOf({ options }: CommandLine): string {
  return oneOf("mode", RUN_MODES, options);
}

/** What a plan may change in the numbers. */
export function precisionOf({ options }: CommandLine): string {
  return oneOf("precision", PRECISIONS, options);
}

/** Whether a GPU is to run the program. */
export function isForGpu({ verb, options }: CommandLine): boolean {
  const device = oneOf("device", DEVICES, options);
  if (device === DEVICES[0]) return false;
  // Steps are timed by the device's own clock, beside the peak that it is measured to have, by the native command.
  if (verb.name === "profile") throw new CommandLineError(`profile --device ${device} is of the native command alone`);
  return true;
}

function oneOf(option: string, names: readonly [string, ...string[]], options: CommandLine["options"]): string {
  const [name = names[0]] = options.get(option) ?? [];
  if (names.includes(name)) return name;
  throw new CommandLineError(`there is no ${option} ${name}: --${option} is ${names.join(" or ")}`);
}

/** The shell that completions are for. */
export function shellOf({ files: [name = ""] }: CommandLine): (typeof SHELLS)[number] {
  const known = SHELLS.find((it) => it === name);
  if (known === undefined) {
    throw new CommandLineError(`there are no completions for ${name}: SHELL is ${SHELLS.join(", ")}`);
  }
  return known;
}

/** The format of the file to write: `--to`, or else its ending. */
export function formatOf({ options }: CommandLine, output: string): "pt2" | "fxg" {
  const [given] = options.get("to") ?? [];
  if (given === "pt2" || given === "fxg") return given;
  if (given !== undefined) throw new CommandLineError(`there is no format ${given}: --to is pt2 or fxg`);
  if (output.endsWith(".pt2")) return "pt2";
  if (output.endsWith(".fxg")) return "fxg";
  throw new CommandLineError(`${output} ends neither in .pt2 nor in .fxg: say --to pt2 or --to fxg`);
}

/** A number as both commands read it: digits, of which JavaScript can hold the value. */
function number(text: string): number | undefined {
  const value = Number(text);
  return /^[0-9]+$/.test(text) && Number.isSafeInteger(value) ? value : undefined;
}
