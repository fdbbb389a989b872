/**
 * Python's spelling of a member, answered with ours.
 *
 * Who comes from PyTorch writes `graph.call_function` and `x.log_softmax`. For JavaScript these are properties that are not
 * there, and it says no more than that `undefined` is no function. The classes that have PyTorch's members end in an object
 * that is asked for what none of them has, and names the member that was meant. It is asked for nothing else, so that members
 * that are there cost what they cost without it.
 *
 * @module
 */
import { fxError } from "./errors.ts";
import { camelCase } from "./naming.ts";

/** What to do in the place of members of Python's that have no counterpart of the same name. */
export type Advice = Readonly<Record<string, string>>;

/**
 * What stands at the end of a chain of prototypes, in the place of `Object.prototype`. Messages call the object `what`.
 *
 * @example
 * ```ts
 * Object.setPrototypeOf(Graph.prototype, answeringPythonNames("a Graph", { python_code: "graph.generateCode()" }));
 * ```
 */
export function answeringPythonNames(what: string, advice: Advice = {}): object {
  return new globalThis.Proxy(Object.prototype, {
    get(target, key, receiver) {
      refusePythonName(what, key, receiver as object, advice);
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
}

/** Refuses a member that is not there, where its name is Python's for one that is. */
export function refusePythonName(what: string, key: string | symbol, receiver: object, advice: Advice = {}): void {
  if (typeof key !== "string") return;
  const help = Object.hasOwn(advice, key) ? advice[key] : counterpart(key, receiver);
  if (help !== undefined) throw fxError("InvalidOption", `${what} has no member \`${key}\``, { help });
}

/** The advice to use the member of this name in JavaScript's spelling, where there is one. */
function counterpart(name: string, receiver: object): string | undefined {
  if (/^-?\d+$/.test(name)) return "at" in receiver ? `write at(${name})` : undefined;
  // What Python calls `__len__` and the like is nothing that JavaScript spells otherwise.
  if (!name.includes("_") || name.startsWith("_")) return undefined;
  const ours = camelCase(name);
  return ours !== name && ours in receiver ? `did you mean \`${ours}\`? names are in camel case here` : undefined;
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
    for (const name of Object.getOwnPropertyNames(it)) {
      const help = counterpart(name, base.prototype as object);
      if (help !== undefined) {
        throw fxError("InvalidOption", `${own.name} overrides \`${name}\`, which ${base.name} does not call`, { help });
      }
    }
  }
  looked.add(own);
}
