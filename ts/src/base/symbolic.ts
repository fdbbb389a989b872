/**
 * Numbers that are known by an expression only, such as a dynamic size of a module that is being exported.
 *
 * @module
 */
import { Float } from "./values.ts";

/** What a number is in a run: whole, with a fraction, or the answer to a question. */
export type NumberKind = "int" | "float" | "bool";

/** A number, or the answer to a question, that is known by its expression. */
export abstract class SymbolicNumber {
  /** What it is in a run. */
  abstract get kind(): NumberKind;

  /** A function of numbers, by its qualified name: `operator.add`, `math.ceil`, `torch.sym_max`. */
  abstract compute(target: string, args: readonly unknown[]): unknown;

  /** Takes this to hold: `torch._check`. */
  abstract check(message: string): void;

  /** Whether it holds of the example inputs, and of all inputs from here on. */
  abstract decide(): boolean;

  /** Its expression, for messages. */
  abstract get text(): string;
}

/** Functions of numbers, by their names. */
const OF_NUMBERS = /^(?:operator|math|builtins)\.|^torch\._?sym_/;

/** Those that look at containers, and at no number in them. */
const OF_CONTAINERS = /^(?:operator\.(?:getitem|concat)|builtins\.(?:getattr|len|list|tuple))$/;

/** Whether a function is one of numbers, which symbolic ones are computed by. */
export function isOfNumbers(target: string): boolean {
  return OF_NUMBERS.test(target) && !OF_CONTAINERS.test(target);
}

/** A symbolic number among arguments that are all numbers, or a list of them; undefined where they are not. */
export function symbolicAmong(args: readonly unknown[], isInList = false): SymbolicNumber | undefined {
  let found: SymbolicNumber | undefined;
  for (const arg of args) {
    if (arg instanceof SymbolicNumber) found ??= arg;
    else if (Array.isArray(arg) && !isInList) found ??= symbolicAmong(arg as readonly unknown[], true);
    else if (typeof arg === "object" && arg !== null && !(arg instanceof Float)) return undefined;
  }
  return found;
}
