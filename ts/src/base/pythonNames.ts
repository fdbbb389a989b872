/**
 * Python's spelling of a member, answered with ours.
 *
 * Who comes from PyTorch writes `graph.call_function` and `x.log_softmax`. For JavaScript these are properties that are not
 * there, and it says no more than that `undefined` is no function. The classes that have PyTorch's members end in an object
 * that is asked for what none of them has, and names the member that was meant. It is asked for nothing else, so that members
 * that are there cost what they cost without it.
 *
 * Only members of this package's classes are meant. A class that extends one of them may look for what it does not have, as in
 * `this.max_len ?? 5`, whatever else it has.
 *
 * @module
 */
import { fxError } from "./errors.ts";
import { camelCase } from "./naming.ts";

/** How members that are not there are answered. */
export interface Answers {
  /** What to do in the place of members of Python's that have no counterpart of the same name. */
  readonly advice?: Readonly<Record<string, string>>;
  /** Whether positions are answered with `at`: of lists that no console looks into by position. */
  readonly positions?: boolean;
}

/** What messages call the object: a text, or what gives it. */
type Naming = string | ((object: object) => string);

/** What stands at the ends of chains of prototypes. What is before one is a class of the package, or an object like one. */
const ends = new WeakSet<object>();
/** The prototypes of other classes of the package whose members are meant. */
const ours = new WeakSet<object>();

/**
 * What stands at the end of a chain of prototypes, before `Object.prototype`. Messages call the object `what`.
 *
 * @example
 * ```ts
 * Object.setPrototypeOf(NodeList.prototype, answeringPythonNames("a NodeList", { positions: true }));
 * ```
 */
export function answeringPythonNames(what: Naming, answers: Answers = {}): object {
  const end = Object.create(Object.prototype) as object;
  const res = new globalThis.Proxy(end, {
    get(target, key, receiver) {
      refusePythonName(what, key, receiver as object, answers);
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  ends.add(res);
  return res;
}

/** Notes that members of these classes, and of those between them and the one that answers, are meant too. */
export function answerMembersOf(...classes: readonly { readonly prototype: object }[]): void {
  for (const { prototype } of classes) {
    for (let it = prototype; it !== Object.prototype && !isOurs(it); it = Object.getPrototypeOf(it) as object) {
      ours.add(it);
    }
  }
}

function isOurs(it: object): boolean {
  return ours.has(it) || ends.has(Object.getPrototypeOf(it) as object);
}

/** Refuses a member that is not there, where its name is Python's for one that is. */
export function refusePythonName(what: Naming, key: string | symbol, receiver: object, answers: Answers = {}): void {
  if (typeof key !== "string") return;
  const { advice = {}, positions = false } = answers;
  const help = Object.hasOwn(advice, key) ? advice[key] : counterpart(key, receiver, positions);
  if (help === undefined) return;
  const name = typeof what === "string" ? what : what(receiver);
  throw fxError("InvalidOption", `${name} has no member \`${key}\``, { help });
}

/** The advice to use the member of this name in JavaScript's spelling, where there is one. */
function counterpart(name: string, receiver: object, positions: boolean): string | undefined {
  if (positions && /^-?\d+$/.test(name)) return `write at(${name})`;
  const spelled = respelled(name);
  return spelled !== undefined && hasOurs(receiver, spelled) ? didYouMean(spelled) : undefined;
}

/** Whether an object has a member, and has it from a class of this package. */
function hasOurs(object: object, name: string): boolean {
  let it: object | null = object;
  while (it !== null && !Object.hasOwn(it, name)) it = Object.getPrototypeOf(it) as object | null;
  if (it === null || it === Object.prototype) return false;
  // The fields of an object may be of every class that made it.
  return isOurs(it) || (it === object && isOurs(Object.getPrototypeOf(it) as object));
}

/** JavaScript's spelling of a name, where it is another one. */
function respelled(name: string): string | undefined {
  // What Python calls `__len__` and the like is nothing that JavaScript spells otherwise.
  if (!name.includes("_") || name.startsWith("_")) return undefined;
  const res = camelCase(name);
  return res === name ? undefined : res;
}

function didYouMean(name: string): string {
  return `did you mean \`${name}\`? names are in camel case here`;
}

type Class = abstract new (...args: never[]) => object;

/** The classes whose methods were looked at. */
const looked = new WeakSet<Class>();

/**
 * Refuses a class with methods by Python's names for those that it means to override: nothing would call them.
 *
 * @example
 * ```ts
 * checkOverrides(new.target, Interpreter); // `run_node` in a subclass
 * ```
 */
export function checkOverrides(own: Class, base: Class): void {
  if (own === base || looked.has(own)) return;
  for (let it = own.prototype as object; it !== base.prototype; it = Object.getPrototypeOf(it) as object) {
    checkMethods(it, own.name, base);
  }
  looked.add(own);
}

/**
 * Refuses such methods of an object, of its class and in its fields: `run_node = (node) => ...`. Fields are there after the
 * constructor of the base class, so this is asked when the object is used.
 */
export function checkOverriding(object: object, base: Class): void {
  const own = object.constructor as Class;
  checkOverrides(own, base);
  checkMethods(object, own.name, base);
}

function checkMethods(holder: object, own: string, base: Class): void {
  for (const name of Object.getOwnPropertyNames(holder)) {
    if (typeof Object.getOwnPropertyDescriptor(holder, name)?.value === "function") checkMethod(name, own, base);
  }
}

/** Refuses a method of this name in a class called `own`, where it is Python's name for one of `base`. */
export function checkMethod(name: string, own: string, base: Class): void {
  const spelled = respelled(name);
  if (spelled === undefined || !isMethod(base.prototype as object, spelled)) return;
  throw fxError("InvalidOption", `${own} overrides \`${name}\`, which ${base.name} does not call`, {
    help: didYouMean(spelled),
  });
}

/** Whether there is a method of this name, which is found without asking for a value. */
function isMethod(prototype: object, name: string): boolean {
  let it: object | null = prototype;
  while (it !== null && !Object.hasOwn(it, name)) it = Object.getPrototypeOf(it) as object | null;
  if (it === null || it === Object.prototype) return false;
  return typeof Object.getOwnPropertyDescriptor(it, name)?.value === "function";
}
