/**
 * The calls that the build plugin writes into a file.
 *
 * Each stands where JavaScript decides something about a value without asking it. A traced value is refused, with the
 * line of the construct, or recorded if an operator was asked for; for anything else it is as if the call were not there.
 * What the calls are given was evaluated already, so they never evaluate anything twice.
 *
 * The methods have names that no other object has, because the analysis of a function's source tells by them what was
 * checked: bundlers and minifiers rename variables, and leave members alone.
 *
 * @module
 */
import { callFunction } from "../functions/table.ts";
import { symbolicAmong } from "../base/symbolic.ts";
import { Tensor } from "../tensor/tensor.ts";
import {
  caseOf,
  compareNumbers,
  type Equality,
  isOfNumbers,
  isSameNumber,
  isSymbolic,
  keyOf,
  sampleOf,
  seek,
  truthOf,
} from "./checkedNumbers.ts";
import { isProxy, standsForNull, type TracedValue } from "./proxy.ts";
import { isTraced, recorderOf, WITHOUT_ELEMENTS } from "../record/record.ts";
import { enter, leave, traceError } from "../record/stack.ts";

/** JavaScript's operators, by what Python's `operator` calls them. */
const BINARY = {
  "+": "add",
  "-": "sub",
  "*": "mul",
  "/": "truediv",
  "%": "mod",
  "**": "pow",
  "<": "lt",
  "<=": "le",
  ">": "gt",
  ">=": "ge",
  "&": "and_",
  "|": "or_",
  "^": "xor",
  "<<": "lshift",
  ">>": "rshift",
} as const;

const UNARY = { "-": "neg", "+": "pos", "~": "invert" } as const;

/** An operator with two operands that can be recorded. */
export type BinaryOperator = keyof typeof BINARY;

/** An operator with one operand that can be recorded. */
export type UnaryOperator = keyof typeof UNARY;

/** A member that was looked up once, to be read and assigned. */
export interface MemberReference {
  value: unknown;
  /** Assigns what the operator gives. */
  update(operator: BinaryOperator, operand: unknown): unknown;
}

type Callable = (...args: unknown[]) => unknown;

/** What asks for the very value, and not for its kind. */
const BY_IDENTITY: ReadonlySet<string> = new Set(["switch", "case", "Object.is"]);

/** Functions of JavaScript's own that may be predicates themselves, and that ask for the kind of a value. */
const ASKED: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [Array.isArray, "Array.isArray"],
  [Number.isFinite, "Number.isFinite"],
  [Number.isInteger, "Number.isInteger"],
  [Number.isNaN, "Number.isNaN"],
  [Number.isSafeInteger, "Number.isSafeInteger"],
]);

class Checked {
  /** The value, of which JavaScript is about to ask whether it is true; an assertion has a message. */
  $test(value: unknown, construct: string, message?: string): unknown {
    if (isProxy(value)) return value.tracer.toBool(value, construct, message);
    if (isSymbolic(value)) return truthOf(value);
    if (isWithoutElements(value)) throw decided(construct);
    return value;
  }

  /** The value, of which JavaScript is about to ask something that only a plain value can answer. */
  $plain(value: unknown, construct: string): unknown {
    if (isTraced(value)) throw decided(construct);
    if (isSymbolic(value)) return sampleOf(value, construct);
    // A tensor of an export is of the class that it will be of; it is not the one that it will be.
    if (BY_IDENTITY.has(construct) && isWithoutElements(value)) throw decided(construct);
    return value;
  }

  /** The value of a `switch`, or the case that is the same. */
  $switch(value: unknown, cases: () => readonly unknown[]): unknown {
    return isSymbolic(value) ? caseOf(value, cases) : this.$plain(value, "switch");
  }

  /** The value, of which JavaScript is about to ask whether it is null. */
  $present(value: unknown, construct: string): unknown {
    if (isProxy(value) && standsForNull(value)) {
      throw traceError("TraceControlFlow", `\`${construct}\` asks whether a traced value is there that may be null`, {
        help: "say that it is not there with concreteArgs: { name: null }, or write a function for when it is there",
      });
    }
    return value;
  }

  /** `left operator right`, for the operators that compare. */
  $compare(left: unknown, operator: Equality, right: unknown): boolean {
    if (isNull(left) || isNull(right)) {
      this.$present(isNull(left) ? right : left, operator);
    } else if (isOfTrace(left) || isOfTrace(right)) throw decided(operator);
    else if (isSymbolic(left) || isSymbolic(right)) return compareNumbers(left, operator, right);
    switch (operator) {
      case "===":
        return left === right;
      case "!==":
        return left !== right;
      case "==":
        // oxlint-disable-next-line eqeqeq -- this is what the user wrote
        return left == right;
      case "!=":
        // oxlint-disable-next-line eqeqeq -- this is what the user wrote
        return left != right;
    }
  }

  /** `Object.is(left, right)`. */
  $is(left: unknown, right: unknown): boolean {
    if (isSymbolic(left) || isSymbolic(right)) return isSameNumber(left, right);
    return Object.is(this.$plain(left, "Object.is"), this.$plain(right, "Object.is"));
  }

  /** The method of a value, which refuses to look for traced values, or among them, and decides on numbers of an export. */
  $method(receiver: unknown, name: string): Callable {
    const method = (receiver as Record<string, Callable>)[name];
    return (...args) => {
      if (isArray(receiver)) {
        if (isOfTrace(args[0]) || receiver.some(isOfTrace)) throw decided(name);
        if (isSymbolic(args[0]) || receiver.some(isSymbolic)) return seek(receiver, name, args);
      } else if (isKeyed(receiver)) {
        if (isOfTrace(args[0])) throw decided(name);
        if (isSymbolic(args[0]) && "keys" in receiver) args[0] = keyOf(receiver.keys(), args[0]);
      }
      return Reflect.apply(method as Callable, receiver, args);
    };
  }

  /** What a value is put into, which refuses what is a key or an element by its identity only. */
  $holder(receiver: unknown, name: string): unknown {
    if (!isKeyed(receiver)) return receiver;
    const method = (receiver as unknown as Record<string, Callable>)[name] as Callable;
    return {
      [name]: (...args: unknown[]): unknown =>
        Reflect.apply(method, receiver, [this.$key(args[0], name), ...args.slice(1)]),
    };
  }

  /** The elements of a set, or the entries of a map, that is about to be made. */
  $keys(elements: unknown, construct: string): unknown {
    if (!Array.isArray(elements)) return elements;
    const isMap = construct.endsWith("Map");
    for (const it of elements as unknown[]) this.$key(isMap && Array.isArray(it) ? it[0] : it, construct);
    return elements;
  }

  /** A key, or an element of a set. */
  $key(key: unknown, construct: string): unknown {
    if (isTraced(key) || isSymbolic(key)) throw decided(construct);
    return key;
  }

  /** The function, whose result JavaScript is about to ask whether it is true. */
  $predicate(predicate: unknown, construct: string): unknown {
    if (typeof predicate !== "function" || isTraced(predicate)) return predicate;
    const asked = ASKED.get(predicate);
    const checked = this as Checked;
    return function (this: unknown, ...args: unknown[]): unknown {
      if (predicate === Boolean) return Boolean(checked.$test(args[0], construct));
      if (asked !== undefined) args[0] = checked.$plain(args[0], asked);
      return checked.$test(Reflect.apply(predicate, this, args), construct);
    };
  }

  /** `left operator right`, recorded for traced values and computed for tensors. */
  $operator(left: unknown, operator: BinaryOperator, right: unknown): unknown {
    if (isOperand(left) || isOperand(right))
      return called(`operator.${BINARY[operator]}`, [left, right], this.$operator);
    if ((isSymbolic(left) || isSymbolic(right)) && isOfNumbers(left, operator, right)) {
      return called(`operator.${BINARY[operator]}`, [left, right], this.$operator);
    }
    // What JavaScript does with anything is what it does with numbers, as far as types go.
    const [a, b] = [left as number, right as number];
    switch (operator) {
      case "+":
        return a + b;
      case "-":
        return a - b;
      case "*":
        return a * b;
      case "/":
        return a / b;
      case "%":
        return a % b;
      case "**":
        return a ** b;
      case "<":
        return a < b;
      case "<=":
        return a <= b;
      case ">":
        return a > b;
      case ">=":
        return a >= b;
      case "&":
        return a & b;
      case "|":
        return a | b;
      case "^":
        return a ^ b;
      case "<<":
        return a << b;
      case ">>":
        return a >> b;
    }
  }

  /** `operator operand`, recorded for a traced value and computed for a tensor. */
  $unary(operator: UnaryOperator, operand: unknown): unknown {
    if (isOperand(operand)) return called(`operator.${UNARY[operator]}`, [operand], this.$unary);
    if (isSymbolic(operand) && operator !== "~") return called(`operator.${UNARY[operator]}`, [operand], this.$unary);
    const a = operand as number;
    switch (operator) {
      case "-":
        return -a;
      case "+":
        return +a;
      case "~":
        return ~a;
    }
  }

  /** The member of an object, to be assigned by `operator`. */
  $member(object: object, key: PropertyKey, operator?: "&&=" | "||=" | "??="): MemberReference {
    const checked = this as Checked;
    const holder = object as Record<PropertyKey, unknown>;
    const before = operator === undefined ? holder[key] : undefined;
    const write = (value: unknown): unknown => {
      holder[key] = value;
      return value;
    };
    return {
      get value(): unknown {
        const value = holder[key];
        return operator === "??=" ? checked.$present(value, operator) : checked.$test(value, operator ?? "");
      },
      set value(value) {
        write(value);
      },
      update: (by, operand) => write(checked.$operator(before, by, operand)),
    };
  }
}

/**
 * What the build plugin's calls are methods of; code that a person writes has no use for it.
 */
export const __tracefx: Checked = new Checked();

function isNull(value: unknown): boolean {
  return value === null || value === undefined;
}

function isOperand(value: unknown): value is Tensor | TracedValue {
  return value instanceof Tensor;
}

/** Whether this stands for a value, of which JavaScript could ask nothing but whether it is the same object. */
function isOfTrace(value: unknown): boolean {
  return isTraced(value) || isWithoutElements(value);
}

/** Whether this is a tensor of an export. */
function isWithoutElements(value: unknown): boolean {
  return value instanceof Tensor && WITHOUT_ELEMENTS in value;
}

function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function isKeyed(value: unknown): value is Map<unknown, unknown> | Set<unknown> | WeakMap<object, unknown> {
  return value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof WeakSet;
}

function called(target: string, args: readonly unknown[], by: (...args: never[]) => unknown): unknown {
  const outer = enter(by);
  try {
    const recorder = recorderOf(args);
    if (recorder !== undefined) return recorder.createProxy("call_function", target, args, {});
    const number = symbolicAmong(args);
    if (number !== undefined) return number.compute(target, args);
    return callFunction(target, { args, kwargs: {} });
  } finally {
    leave(outer);
  }
}

function decided(construct: string) {
  return traceError(
    "TraceControlFlow",
    `\`${construct}\` would decide something about a traced value, which has no value yet`,
    {
      help:
        "compare with torch.eq and choose with torch.where, or fix the value with concreteArgs: { name: value }; " +
        "while a module is exported, guard(operator.eq(x.size(0), 4)) decides on a size",
    },
  );
}
