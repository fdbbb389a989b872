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
import { Tensor } from "../tensor/tensor.ts";
import { isProxy, standsForNull, type TracedValue } from "./proxy.ts";
import { isTraced, recorderOf } from "./record.ts";
import { enter, leave, traceError } from "./stack.ts";

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

class Checked {
  /** The value, of which JavaScript is about to ask whether it is true. */
  $test(value: unknown, construct: string): unknown {
    return isProxy(value) ? value.tracer.toBool(value, construct) : value;
  }

  /** The value, of which JavaScript is about to ask something that only a plain value can answer. */
  $plain(value: unknown, construct: string): unknown {
    if (isTraced(value)) throw decided(construct);
    return value;
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
  $compare(left: unknown, operator: "===" | "!==" | "==" | "!=", right: unknown): boolean {
    if (isNull(left) || isNull(right)) {
      this.$present(isNull(left) ? right : left, operator);
    } else if (isTraced(left) || isTraced(right)) throw decided(operator);
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

  /** The method of a value, which refuses to look for traced values, or among them. */
  $method(receiver: unknown, name: string): Callable {
    const method = (receiver as Record<string, Callable>)[name] as Callable;
    return (...args) => {
      if (isCollection(receiver) && (isTraced(args[0]) || (Array.isArray(receiver) && receiver.some(isTraced))))
        throw decided(name);
      return Reflect.apply(method, receiver, args);
    };
  }

  /** The function, whose result JavaScript is about to ask whether it is true. */
  $predicate(predicate: unknown, construct: string): unknown {
    if (typeof predicate !== "function" || isTraced(predicate)) return predicate;
    const checked = this as Checked;
    return function (this: unknown, ...args: unknown[]): unknown {
      if (predicate === Boolean) checked.$test(args[0], construct);
      return checked.$test(Reflect.apply(predicate, this, args), construct);
    };
  }

  /** `left operator right`, recorded for traced values and computed for tensors. */
  $operator(left: unknown, operator: BinaryOperator, right: unknown): unknown {
    if (isOperand(left) || isOperand(right))
      return called(`operator.${BINARY[operator]}`, [left, right], this.$operator);
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

function isCollection(value: unknown): boolean {
  return (
    Array.isArray(value) ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof WeakMap ||
    value instanceof WeakSet
  );
}

function called(target: string, args: readonly unknown[], by: (...args: never[]) => unknown): unknown {
  const outer = enter(by);
  try {
    const recorder = recorderOf(args);
    if (recorder !== undefined) return recorder.createProxy("call_function", target, args, {});
    return callFunction(target, { args, kwargs: {} });
  } finally {
    leave(outer);
  }
}

function decided(construct: string) {
  return traceError(
    "TraceControlFlow",
    `\`${construct}\` would decide something about a traced value, which has no value yet`,
    { help: "compare with torch.eq and choose with torch.where, or fix the value with concreteArgs: { name: value }" },
  );
}
