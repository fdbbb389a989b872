/**
 * Conditions on sizes, solved: `DimConstraints` of `torch.fx.experimental.symbolic_shapes`.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkText } from "../base/given.ts";
import { SymExpr, type SymInt, TensorMeta, type Val } from "../graph/val.ts";
import { DimVar } from "./dim.ts";
import { type SessionInput, ShapeSession } from "./shapes.ts";

/** A size or int of the inputs, by how guards call it. */
type BySource = ReadonlyMap<string, SymInt>;

/**
 * Conditions on the sizes of inputs, and what follows from them together: which sizes can only have one value, and what would have to be
 * said of the dimensions so that the conditions hold. `exportProgram` does the same with what a module asks of its inputs.
 *
 * @example
 * ```ts
 * const x = { source: "L['x']", value: torch.ones(6, 5), dims: [Dim("dx"), Dim("dy")] };
 * using constraints = new DimConstraints([x]);
 * const [dx, dy] = (constraints.values[0] as TensorMeta).sizes;
 * constraints.add(constraints.call("operator.eq", [dy, 5]));
 * constraints.solve();
 * constraints.forcedSpecializations(); // Map { "dy = L['x'].size()[1]" => 5 }
 * constraints.prettifyResults(); // "Specializations unexpectedly required (dy)! …"
 * ```
 */
export class DimConstraints implements Disposable {
  readonly #session: ShapeSession;
  readonly #bySource: BySource;
  /** The dimensions that have names. */
  readonly #named: readonly (readonly [name: string, size: SymInt])[];
  readonly #inconsistencies: string[] = [];
  #violation: string | undefined;

  /** Inputs, whose dimensions have names. */
  constructor(inputs: readonly SessionInput[]) {
    this.#session = new ShapeSession(inputs);
    this.#bySource = new Map(inputs.flatMap(({ source }, at) => numbersOf(source, this.values[at] as Val)));
    this.#named = inputs.flatMap(({ source, dims = [] }, at) =>
      numbersOf(source, this.values[at] as Val).flatMap(([place, size], dim) => {
        const spec = dims[dim];
        return spec instanceof DimVar ? [[`${spec.name} = ${place}`, size] as const] : [];
      }),
    );
  }

  /** What is known of each input, with symbols in the place of dynamic sizes. */
  get values(): readonly Val[] {
    return this.#session.values;
  }

  /** A function of sizes: `operator.mod`. */
  call(name: string, args: readonly unknown[]): SymExpr | number | boolean {
    return this.#session.call(name, args) as SymExpr | number | boolean;
  }

  /** Adds a condition, and answers whether it follows from what is known already. */
  add(condition: SymExpr | number | boolean): boolean {
    checkGiven("DimConstraints.add", typeof condition === "boolean" || condition instanceof SymExpr, "a condition");
    if (condition === true) return true;
    const before = this.#session.state().guards;
    try {
      this.#session.check(condition as SymExpr | false);
    } catch (error) {
      if (!(error instanceof FxError && error.kind === "AssertionFailed")) throw error;
      this.#inconsistencies.push(`${String(condition)} is inconsistent!`);
      return false;
    }
    return this.#session.state().guards === before;
  }

  /** Adds that a size or int is an expression of others: `addEquality("L['x'].size()[0]", n)`. */
  addEquality(source: string, expr: SymInt): void {
    checkText("DimConstraints.addEquality", "the source", source);
    const symbol = this.#bySource.get(source);
    if (symbol === undefined) {
      throw fxError("InvalidArgument", `no input has ${source}`, {
        help: `there are ${[...this.#bySource.keys()].join(", ")}`,
      });
    }
    this.add(this.call("operator.eq", [symbol, expr]));
  }

  /**
   * Solves the conditions.
   *
   * @throws {@link ExportError} where one of them cannot hold.
   */
  solve(): void {
    if (this.#inconsistencies.length > 0) {
      const what = `The following inconsistencies were found:\n${this.#inconsistencies.join("\n")}`;
      throw fxError("ConstraintViolation", what);
    }
    this.#violation = "";
    try {
      this.#session.finish();
    } catch (error) {
      if (!(error instanceof FxError && error.kind === "ConstraintViolation")) throw error;
      this.#violation = error.reason;
    }
  }

  /** The sizes that can only have one value, and it: `dx = L['x'].size()[0]` is the dimension `dx`. */
  forcedSpecializations(): Map<string, number> {
    const text = this.#solved("forcedSpecializations");
    const found = Array.from(text.matchAll(FORCED), ([, name, value]) => [name as string, Number(value)] as const);
    const replaced = this.#named.flatMap(([name, size]) => {
      const value = size instanceof SymExpr ? this.#session.simplify<SymInt>(size) : size;
      return typeof value === "number" && size instanceof SymExpr ? [[name, value] as const] : [];
    });
    return new Map([...replaced, ...found].toSorted(([a], [b]) => (sourceOf(a) < sourceOf(b) ? -1 : 1)));
  }

  /** What has to be said of the dimensions instead, as the message of an export has it; empty where nothing has. */
  prettifyResults(): string {
    const text = this.#solved("prettifyResults");
    const forced = [...this.forcedSpecializations()];
    const names = forced.map(([name]) => name.slice(0, name.lastIndexOf(" = "))).toSorted();
    const lines = forced.map(
      ([name, value]) => `  - solving the guards generated for ${name} resulted in a specialized value of ${value}.\n`,
    );
    const required = `Specializations unexpectedly required (${names.join(", ")})! For more information, run with TORCH_LOGS="+dynamic".\n`;
    const fixes = text.search(/^Suggested fixes:/m);
    return [forced.length > 0 ? required : "", ...lines, fixes < 0 ? "" : `\n${text.slice(fixes)}`].join("");
  }

  [Symbol.dispose](): void {
    this.#session[Symbol.dispose]();
  }

  #solved(what: string): string {
    if (this.#violation !== undefined) return this.#violation;
    throw fxError("InvalidArgument", `${what} tells what was solved`, { help: "call solve() before" });
  }
}

/** How the message of an export says what its conditions leave of a dimension. */
const FORCED = /^ {2}- solving the guards generated for (.+) resulted in a specialized value of (-?\d+)\.$/gm;

function sourceOf(name: string): string {
  return name.slice(name.lastIndexOf(" = ") + " = ".length);
}

function numbersOf(source: string, value: Val): [source: string, number: SymInt][] {
  if (value instanceof TensorMeta) return value.sizes.map((it, dim) => [`${source}.size()[${dim}]`, it]);
  return value instanceof SymExpr || typeof value === "number" ? [[source, value]] : [];
}
