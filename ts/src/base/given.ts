/**
 * What the functions of the package are given: options that there are not are refused, since a misspelt one would do nothing,
 * and so are arguments of another kind, before something inside breaks on them.
 *
 * @module
 */
import { type FxError, fxError } from "./errors.ts";

/**
 * Refuses options that `what` does not have, and what is no object of options. The nearest of the known names is suggested.
 * The names are all those of the type, or it does not compile.
 *
 * @example
 * ```ts
 * checkOptions("constantFold", options, ["constraintFn", "maxBytes"]);
 * ```
 */
export function checkOptions<Options extends object, const Names extends readonly (keyof Options & string)[]>(
  what: string,
  options: Options,
  names: Names & ([Exclude<keyof Options, Names[number]>] extends [never] ? unknown : never),
): void {
  checkNames(what, options, names);
}

/** The same for options whose names are found as the program runs. */
export function checkNames(what: string, options: object, names: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw fxError("InvalidOption", `${what} takes its options as an object`, { help: knownOptions(names) });
  }
  for (const name of Object.keys(options)) if (!names.includes(name)) throw unknownOption(what, name, names);
}

/** The refusal of an option that there is not. */
export function unknownOption(what: string, name: string, names: readonly string[]): FxError {
  return fxError("InvalidOption", `${what} has no option \`${name}\``, {
    help: `${suggestion(name, names)}${knownOptions(names)}`,
  });
}

/** The question whether the nearest of the names was meant, where one is near. */
export function suggestion(given: string, names: readonly string[]): string {
  const nearest = nearestName(given, names);
  return nearest === undefined ? "" : `did you mean \`${nearest}\`? `;
}

function knownOptions(names: readonly string[]): string {
  return names.length === 0 ? "it takes none" : `the options are ${names.join(", ")}`;
}

/**
 * The name that was meant: the same but for capitals and underscores, or at most a third of its letters away.
 *
 * @example
 * ```ts
 * nearestName("dynamic_shapes", ["dynamicShapes", "strict"]); // "dynamicShapes"
 * ```
 */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const wanted = plain(given);
  let nearest: string | undefined;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of names) {
    const steps = distance(wanted, plain(name), least);
    if (steps < least) [nearest, least] = [name, steps];
  }
  return nearest;
}

function plain(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** In how many letters two words differ: Levenshtein's distance, or `limit` where it is no less. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return Math.min(row[b.length] as number, limit);
}

/**
 * Refuses an argument that is no function.
 *
 * @example
 * ```ts
 * checkFunction("splitModule", "splitCallback", splitCallback);
 * ```
 */
export function checkFunction(what: string, argument: string, value: unknown): void {
  if (typeof value === "function") return;
  throw fxError("InvalidArgument", `${what} takes a function as ${argument}`);
}

/**
 * Refuses an argument that is no list.
 *
 * @example
 * ```ts
 * checkList("NetMinimizer", "sampleInput", sampleInput);
 * ```
 */
export function checkList(what: string, argument: string, value: unknown): void {
  if (Array.isArray(value)) return;
  throw fxError("InvalidArgument", `${what} takes a list as ${argument}`, {
    help: `give it in brackets: [${argument}]`,
  });
}

/**
 * Refuses an argument that is not what it should be.
 *
 * @example
 * ```ts
 * checkGiven("save", program instanceof ExportedProgram, "an ExportedProgram", "exportProgram(module, args) makes one");
 * ```
 */
export function checkGiven(what: string, isRight: boolean, wanted: string, help?: string): void {
  if (!isRight) throw fxError("InvalidArgument", `${what} takes ${wanted}`, { help });
}

/**
 * Refuses an argument that is no text, such as the thing itself in the place of its name.
 *
 * @example
 * ```ts
 * checkText("getSubmodule", "the path", path, 'names with dots between them, as in "encoder.0"');
 * ```
 */
export function checkText(what: string, argument: string, value: unknown, help?: string): void {
  if (typeof value === "string") return;
  throw fxError("InvalidArgument", `${what} takes a string as ${argument}`, { help });
}

/**
 * Refuses an argument that is no dotted path.
 *
 * @example
 * ```ts
 * checkPath("getSubmodule", path);
 * ```
 */
export function checkPath(what: string, path: unknown): void {
  checkText(what, "the path", path, 'names with dots between them, as in "encoder.0.weight"');
}

/**
 * Refuses an argument whose items cannot be gone through.
 *
 * @example
 * ```ts
 * checkIterable("ModuleList.extend", "modules", modules);
 * ```
 */
export function checkIterable(what: string, argument: string, value: unknown): void {
  if (value !== null && value !== undefined && Symbol.iterator in Object(value)) return;
  throw fxError("InvalidArgument", `${what} takes an iterable as ${argument}`, {
    help: `give it in brackets: [${argument}]`,
  });
}

/**
 * Refuses what are no arguments of a call.
 *
 * @example
 * ```ts
 * checkArguments("createProxy", args, kwargs);
 * ```
 */
export function checkArguments(what: string, args: unknown, kwargs: unknown): void {
  checkList(what, "args", args);
  checkGiven(what, typeof kwargs === "object" && kwargs !== null, "an object as kwargs", "{} where there are none");
}
