/**
 * The two spellings of a name: PyTorch's in data (`log_softmax`, `memory_format`), JavaScript's in code (`logSoftmax`,
 * `memoryFormat`).
 *
 * @module
 */

/** Names of PyTorch whose capital letters mean themselves. */
const KEPT: ReadonlySet<string> = new Set(["T", "H", "mT", "mH"]);

const python = new Map<string, string>();

/** JavaScript's spelling of a name of PyTorch: `log_softmax` is `logSoftmax`, `add_` and `atleast_1d` stay. */
export function camelCase(name: string): string {
  return name.replace(/(?<=[A-Za-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** PyTorch's spelling of a name in JavaScript: `logSoftmax` is `log_softmax`; a name in that spelling stays. */
export function pythonName(name: string): string {
  const known = python.get(name);
  if (known !== undefined) return known;
  const res = KEPT.has(name) ? name : name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  // Names come from source code, so there are few of them; hostile ones must not fill the memory all the same.
  if (python.size < 10_000) python.set(name, res);
  return res;
}

/** Whether a value is an object of options: what an object literal makes. */
export function isOptions(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What a call was given: Python's positional and keyword arguments. */
export interface CallArguments {
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

const NONE: Readonly<Record<string, unknown>> = Object.freeze({});

/**
 * Takes a trailing object of options for the keyword arguments, with the names spelled as in PyTorch unless `verbatim`.
 * Arguments that were left out at the end, and options that are undefined, are not there.
 */
export function splitArguments(given: readonly unknown[], verbatim = false): CallArguments {
  const last = given.at(-1);
  const options = isOptions(last) ? last : undefined;
  let end = options === undefined ? given.length : given.length - 1;
  while (end > 0 && given[end - 1] === undefined) end--;
  const args = end === given.length ? given : given.slice(0, end);
  if (options === undefined) return { args, kwargs: NONE };
  const kwargs: Record<string, unknown> = {};
  for (const name of Object.keys(options)) {
    if (options[name] === undefined) continue;
    // Defined, not assigned, so that a key called __proto__ is a key like any other.
    const value = { value: options[name], enumerable: true, writable: true, configurable: true };
    Object.defineProperty(kwargs, verbatim ? name : pythonName(name), value);
  }
  return { args, kwargs };
}

/**
 * The arguments as a call in JavaScript gives them: keyword arguments become a trailing object of options. A dict at the
 * end is followed by an empty one, so that it is not taken for options.
 */
export function joinArguments({ args, kwargs }: CallArguments, verbatim = false): unknown[] {
  const names = Object.keys(kwargs);
  if (names.length === 0) return isOptions(args.at(-1)) ? [...args, {}] : [...args];
  return [...args, Object.fromEntries(names.map((name) => [verbatim ? name : camelCase(name), kwargs[name]]))];
}
