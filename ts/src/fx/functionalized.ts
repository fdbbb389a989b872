/**
 * Operators that write to arguments, in graphs without writes: `auto_functionalized` and `auto_functionalized_v2`.
 *
 * The operator that is the first argument is called on copies, and what it wrote into them is given after its own results.
 * The second version names, for each argument that is written to, a tensor of the list `_all_bases` and how to look at it:
 * the whole, a slice, or sizes with strides.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { splitArguments } from "../base/naming.ts";
import { kindOf } from "../base/members.ts";
import { type SchemaParameter, schemasOf } from "../functions/schemas.ts";
import { defineFunction } from "../functions/table.ts";
import { OpArg } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";

type Named = Readonly<Record<string, unknown>>;

/** Lets graphs call them. */
export function installFunctionalized(): void {
  define("auto_functionalized", (call) => call.onArguments());
  define("auto_functionalized_v2", (call) => call.onBases());
}

function define(name: string, run: (call: FunctionalizedCall) => unknown[]): void {
  const called = (...given: unknown[]): unknown[] => run(new FunctionalizedCall(name, given));
  // The keys name arguments of another operator.
  defineFunction(`torch.ops.higher_order.${name}`, called, { verbatim: true });
}

class FunctionalizedCall {
  readonly #name: string;
  readonly #operator: string;
  readonly #parameters: readonly SchemaParameter[];
  readonly #kwargs: Named;

  constructor(name: string, given: readonly unknown[]) {
    const { args, kwargs } = splitArguments(given, true);
    const [target] = args;
    this.#name = name;
    this.#kwargs = kwargs;
    if (args.length !== 1 || !(target instanceof OpArg || typeof target === "string")) {
      throw this.#refused("the only positional argument should be an operator");
    }
    this.#operator = (typeof target === "string" ? target : target.name).replace(/^torch\.ops\./, "");
    this.#parameters = parametersOfOverload(this.#operator);
  }

  /** Each argument that is written to is copied. */
  onArguments(): unknown[] {
    const written = this.#parameters.filter((it) => it.isMutated);
    const copies = written.map(({ key }) => this.#copy(this.#required(key)));
    return this.#call(Object.fromEntries(written.map(({ key }, at) => [key, copies[at]])), copies);
  }

  /** Each base is copied, and the arguments that are written to look at the copies. */
  onBases(): unknown[] {
    const bases = this.#required("_all_bases");
    if (!Array.isArray(bases)) throw this.#refused(`\`_all_bases\` should be a list and is ${kindOf(bases)}`);
    const copies = bases.map((it) => this.#copy(it));
    const written = this.#parameters.filter((it) => it.isMutated);
    const views = written.map(({ key, type }) => [key, this.#viewOf(key, /\[\d*\]\??$/.test(type), copies)] as const);
    return this.#call(Object.fromEntries(views), copies);
  }

  #call(written: Named, copies: readonly unknown[]): unknown[] {
    const read = this.#parameters.filter(({ key, isMutated }) => !isMutated && Object.hasOwn(this.#kwargs, key));
    const kwargs = { ...written, ...Object.fromEntries(read.map(({ key }) => [key, this.#kwargs[key]])) };
    const results = callOperator(this.#operator, [], kwargs);
    return [...(Array.isArray(results) ? (results as unknown[]) : [results]), ...copies];
  }

  #required(key: string): unknown {
    if (Object.hasOwn(this.#kwargs, key)) return this.#kwargs[key];
    throw this.#refused(`the argument \`${key}\` is missing`);
  }

  #copy(value: unknown): unknown {
    if (value instanceof Tensor) return callOperator("aten.clone", [value]);
    if (Array.isArray(value)) return value.map((it) => this.#copy(it));
    if (value === null) return null;
    throw this.#refused(`${kindOf(value)} cannot be written to`);
  }

  /** The argument of this name, as it looks at the copies of the bases. */
  #viewOf(key: string, isList: boolean, copies: readonly unknown[]): unknown {
    if (!isList) return this.#view(`_${key}`, copies);
    const length = this.#required(`_${key}_length`);
    if (length === null) return null;
    // Each item has an argument that names its base, so that there are not more than those.
    const count = Math.min(this.#index(length), Object.keys(this.#kwargs).length + 1);
    return Array.from({ length: count }, (_, at) => this.#view(`_${key}_${at}`, copies));
  }

  #view(prefix: string, copies: readonly unknown[]): unknown {
    const given = this.#required(`${prefix}_base_index`);
    if (given === null) return null;
    const index = this.#index(given);
    const base = copies[index];
    if (base === undefined) throw this.#refused(`\`${prefix}_base_index\` is ${index}, which is no base`);
    const parts = (...names: string[]): unknown[] => names.map((it) => this.#kwargs[`${prefix}_${it}`]);
    const range = parts("slice_dim", "slice_start", "slice_end");
    if (!range.includes(undefined)) return callOperator("aten.slice.Tensor", [base, ...range]);
    const layout = parts("size", "stride", "storage_offset");
    return layout.includes(undefined) ? base : callOperator("aten.as_strided", [base, ...layout]);
  }

  #index(value: unknown): number {
    const index = typeof value === "bigint" ? Number(value) : value;
    if (Number.isSafeInteger(index)) return index as number;
    throw this.#refused(`an int should be known and is ${kindOf(value)}`);
  }

  #refused(reason: string): FxError {
    return fxError("SchemaMismatch", reason, { op: `higher_order.${this.#name}` });
  }
}

/** The parameters of an overload, by its qualified name, with `torch.ops` or without. */
export function parametersOfOverload(operator: string): readonly SchemaParameter[] {
  const [namespace = "", packet = "", overload = "default"] = operator.replace(/^torch\.ops\./, "").split(".");
  const schemas = schemasOf(namespace === "aten" ? packet : `${namespace}.${packet}`);
  const schema = schemas.find((it) => (it.overload === "" ? "default" : it.overload) === overload);
  if (schema !== undefined) return schema.parameters;
  throw fxError("NotImplemented", `the operator ${operator} is not implemented`, {
    op: operator,
    help: "if it is an operator of your own, define it first: torch.library",
  });
}
