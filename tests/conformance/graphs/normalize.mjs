/**
 * The kind `normalize`: the arguments of calls in one form.
 *
 * @module
 */
import { FxError, Graph, normalizeFunction } from "tracefx";
import { decode, Difference, encodeArg, encodeKwargs, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").Encoded} Encoded */
/** @typedef {{ args: Encoded[], kwargs: { readonly [name: string]: Encoded } }} Call */
/**
 * @typedef {{ name: string, options: { target: string, to_kwargs: boolean }, before: Call, after?: Call | null,
 *   error?: import("./corpus.mjs").RecordedError }} Case
 */

/** The functions whose cases were recorded with the types of their positional arguments. */
const TYPED = new Set(["torch.add", "torch.sum", "torch.flatten", "torch.clamp", "torch.topk"]);

/** Normalizes. */
export function checkNormalize(/** @type {Case} */ { options, before, after, error }) {
  const { target, to_kwargs: normalizeToOnlyUseKwargs } = options;
  const graph = new Graph();
  const nodes = new Map(["x", "y"].map((name) => [name, graph.placeholder(name)]));
  /** @type {(value: Encoded) => import("tracefx").ArgInput} */
  const value = (it) => decode(it, (name) => /** @type {import("tracefx").Node} */ (nodes.get(name)));
  // A node holds the arguments, so that they are in the form that nodes hold.
  const kwargs = new Map(Object.entries(before.kwargs).map(([name, it]) => [name, value(it)]));
  const node = graph.callFunction(target, before.args.map(value), kwargs);
  const call = { args: [...node.args], kwargs: { ...node.kwargs } };
  const types = TYPED.has(target) ? { argTypes: before.args.map(typeOf) } : {};
  const normalize = () => normalizeFunction(target, call, { normalizeToOnlyUseKwargs, ...types });
  if (error !== undefined) {
    same(
      refusalOf(normalize),
      /but the schema match was ambiguous/.test(error.msg) ? "SchemaMismatch" : error.msg,
      "error",
    );
    return;
  }
  const found = normalize();
  if (found === undefined || after === null || after === undefined) {
    same(found ?? null, after, "the arguments");
    return;
  }
  // The same arguments in a node are in the same form as those that were recorded.
  const made = graph.callFunction(target, /** @type {any} */ (found.args), /** @type {any} */ (found.kwargs));
  same(Array.from(made.args, encodeArg), after.args, "args");
  same(Object.entries(encodeKwargs(made.kwargs)), Object.entries(after.kwargs), "kwargs");
}

/** @type {(value: Encoded) => import("tracefx").ArgumentType} */
function typeOf(value) {
  if (typeof value === "number") return "int";
  if (value !== null && typeof value === "object" && "$n" in value) return "Tensor";
  throw new Difference(`no type for ${JSON.stringify(value)}`);
}

/** @type {(body: () => unknown) => string} */
function refusalOf(body) {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error.kind;
    throw error;
  }
  return "nothing was refused";
}
