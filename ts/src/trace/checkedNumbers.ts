/**
 * What JavaScript decides about the numbers of an export, for code that the build plugin has rewritten.
 *
 * A dynamic size, or what `item()` gives, is a number in a run and an object while a module is exported. What is asked of it
 * is answered for the number: by its kind where that is enough, else by the example, which makes a guard, as it does in PyTorch;
 * an unbacked number refuses to be decided.
 *
 * @module
 */
import { SymbolicNumber, symbolicAmong } from "../base/symbolic.ts";
import { traceError } from "../record/stack.ts";

/** JavaScript's comparisons that ask whether two values are the same. */
export type Equality = "===" | "!==" | "==" | "!=";

/** Whether this is a number of an export. */
export function isSymbolic(value: unknown): value is SymbolicNumber {
  return value instanceof SymbolicNumber;
}

/** What JavaScript takes for true where the number is, and for false where it is not. */
export function truthOf(value: SymbolicNumber): unknown {
  if (value.kind === "bool") return value.decide();
  // NaN is false, too; it is not equal to itself.
  if (!isAnswered("operator.ne", value, 0)) return 0;
  return value.kind === "float" && isAnswered("operator.ne", value, value) ? Number.NaN : value;
}

/** Whether two values, of which one is symbolic at least, are the same to `===`. */
export function isSameNumber(left: unknown, right: unknown): boolean {
  if (typeOf(left) !== typeOf(right)) return false;
  if (typeOf(left) === "boolean") return answerOf(left) === answerOf(right);
  return isAnswered("operator.eq", left, right);
}

/** `left operator right`, of which one is symbolic at least. */
export function compareNumbers(left: unknown, operator: Equality, right: unknown): boolean {
  const isLoose = operator === "==" || operator === "!=";
  // What `==` makes of texts and objects first, nobody wants to know.
  if (isLoose && typeOf(left) !== typeOf(right)) throw refused(operator);
  return isSameNumber(left, right) === (operator === "===" || operator === "==");
}

/**
 * Whether an operator does with numbers what Python's does, so that it can be computed. The rest of a division has another sign
 * in JavaScript, so both have to be known not to be negative; what works on 32 bits only is left to JavaScript, which refuses.
 */
export function isOfNumbers(left: unknown, operator: string, right: unknown): boolean {
  if ([left, right].some((it) => typeOf(it) !== "number")) return false;
  if (operator !== "%") return !/^(?:[&|^]|<<|>>)$/.test(operator);
  return isAtLeast(left, 0) && isAtLeast(right, 1);
}

/** The plain value that stands for a number where JavaScript asks only what kind of value it is. */
export function sampleOf(value: SymbolicNumber, construct: string): unknown {
  const asksKind = /^(?:typeof|instanceof|Array\.isArray)$/.test(construct);
  // A number with a fraction is one that is finite and whole, or not.
  if (!asksKind && !(value.kind !== "float" && construct.startsWith("Number.is"))) throw refused(construct);
  return value.kind === "bool" ? false : 0;
}

/** The case of a `switch` that is the same as the value; a value of its own where none is. */
export function caseOf(value: SymbolicNumber, cases: () => readonly unknown[]): unknown {
  const found = cases().find((it) => isSameNumber(value, it));
  return found ?? Symbol("no case");
}

/** What a method of an array that looks for an element gives, where it or one of the elements is symbolic. */
export function seek(array: readonly unknown[], name: string, [wanted, from]: readonly unknown[]): boolean | number {
  const { length } = array;
  const isLast = name === "lastIndexOf";
  const start = from === undefined ? (isLast ? length - 1 : 0) : Math.trunc(Number(from)) || 0;
  const first = start < 0 ? start + length : start;
  const isSame = (it: unknown): boolean =>
    isSymbolic(it) || isSymbolic(wanted)
      ? isSameNumber(it, wanted)
      : it === wanted || (name === "includes" && Object.is(it, wanted));
  let found = -1;
  if (isLast) {
    for (let at = Math.min(first, length - 1); at >= 0 && found < 0; at--)
      if (at in array && isSame(array[at])) found = at;
  } else {
    for (let at = Math.max(first, 0); at < length && found < 0; at++) {
      if ((name === "includes" || at in array) && isSame(array[at])) found = at;
    }
  }
  return name === "includes" ? found >= 0 : found;
}

/** The key of a map or set that is the same as a number; the number itself, which is no key, where none is. */
export function keyOf(keys: Iterable<unknown>, wanted: SymbolicNumber): unknown {
  for (const key of keys) if (isSameNumber(key, wanted)) return key;
  return wanted;
}

function answerOf(value: unknown): unknown {
  return isSymbolic(value) ? value.decide() : value;
}

function isAtLeast(value: unknown, least: number): boolean {
  return isSymbolic(value) ? isAnswered("operator.ge", value, least) : (value as number) >= least;
}

/** Decides a comparison of numbers, of which one is symbolic at least. */
function isAnswered(target: string, left: unknown, right: unknown): boolean {
  const answer = symbolicAmong([left, right])?.compute(target, [left, right]);
  return answer instanceof SymbolicNumber ? answer.decide() : answer === true;
}

function typeOf(value: unknown): string {
  if (!isSymbolic(value)) return typeof value;
  return value.kind === "bool" ? "boolean" : "number";
}

function refused(construct: string) {
  return traceError(
    "TraceControlFlow",
    `\`${construct}\` asks what a number is that is not known while it is exported`,
    {
      help: "compare it with ===, or decide with guard(n.gt(3)); an unbacked number is decided by cond(…) or torch.where(…)",
    },
  );
}
