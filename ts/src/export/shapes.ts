/**
 * What an export knows of sizes: which are dynamic, what follows from what the module did with them, and whether that is what
 * the user said.
 *
 * @module
 */
import { inferOperator } from "../engine/dispatch.ts";
import { fxError } from "../errors.ts";
import type { SymExpr, SymInt, TensorMeta, Val } from "../graph/val.ts";
import { tensorVal } from "../interpret/tensorMetadata.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { DimSpec } from "./dim.ts";
import type { RangeConstraint } from "./program.ts";

/** An input of a module that is exported. */
export interface SessionInput {
  /** How PyTorch names where it comes from: `L['x']`, `L['x'][0]`, `L['x']['key']`. */
  readonly source: string;
  /** The example. Its sizes are the hints of the symbols that stand for dynamic ones. */
  readonly value: Tensor | TensorMeta | Val;
  /** What the user said of each dimension; static without it. A number has one, for itself. */
  readonly dims?: readonly DimSpec[];
}

/** A condition on what only a run can tell, which the program has to assert. */
export interface DeferredAssertion {
  readonly condition: SymExpr;
  readonly message: string;
}

/** What came out of an export. */
export interface SessionResult {
  /** The values that symbols may have, by their names. */
  readonly rangeConstraints: Map<string, RangeConstraint>;
  /** Conditions on the inputs as Python expressions. */
  readonly guards: string[];
  /** What the program has to assert when it runs, in the order in which it became known. */
  readonly assertions: readonly DeferredAssertion[];
  /** An expression with the numbers and symbols for those that turned out to be them. */
  replace(expr: SymInt): SymInt;
}

/**
 * The sizes of one export: PyTorch's `ShapeEnv` with what the user said of the inputs.
 *
 * @example
 * ```ts
 * using shapes = new ShapeSession([{ source: "L['x']", value: x, dims: [Dim("batch", { max: 16 }), null] }]);
 * const y = shapes.infer("aten.mm", [shapes.values[0], weight]);
 * shapes.finish().rangeConstraints; // s77: from 0 to 16
 * ```
 */
export class ShapeSession implements Disposable {
  /** What is known of each input, with symbols in the place of dynamic sizes. */
  readonly values: readonly Val[];

  constructor(inputs: readonly SessionInput[]) {
    this.values = inputs.map(({ value, dims }) => {
      if (dims?.some((it) => typeof it === "object" && it !== null)) throw fxError("NotImplemented", "dynamic sizes");
      return value instanceof Tensor ? tensorVal(value) : value;
    });
  }

  /**
   * What is known of the results of an operator: {@link inferOperator} with the symbols of this export. What the operator
   * needs to hold of sizes becomes a guard; `place` says in errors where the user's code asked for it.
   */
  infer(
    name: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>> = {},
    _place?: string,
  ): unknown {
    return inferOperator(name, args, kwargs);
  }

  /** A function of numbers that may be symbolic: `operator.add`, `math.ceil`, `torch.sym_max`. */
  call(name: string, _args: readonly unknown[]): unknown {
    throw fxError("NotImplemented", `the function ${name} of sizes`);
  }

  /** Whether this holds: by what is known of its symbols, else of the examples, which makes a guard. */
  decide(condition: SymExpr | boolean, _place?: string): boolean {
    if (typeof condition === "boolean") return condition;
    throw fxError("NotImplemented", "conditions of sizes");
  }

  /** The value of an expression for the examples; undefined where only a run can tell it. */
  hint(_expr: SymExpr): number | boolean | undefined {
    return undefined;
  }

  /** Takes this to hold: `torch._check`. A condition on sizes of inputs is a guard, any other is asserted by the program. */
  check(condition: SymExpr | boolean, message?: string): void {
    if (condition === true) return;
    if (condition === false) throw fxError("AssertionFailed", message ?? "Expected cond to be True, but got False");
    throw fxError("NotImplemented", "conditions of sizes");
  }

  /** Compares what became of the sizes with what the user said. */
  finish(): SessionResult {
    return { rangeConstraints: new Map(), guards: [], assertions: [], replace: (it) => it };
  }

  [Symbol.dispose](): void {}
}
