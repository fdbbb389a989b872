/**
 * Arguments in one form, whichever way a call was written: `torch.fx.operator_schemas`.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { OPERATOR_PLACES } from "../../../bindings/schemas.ts";
import { fxError } from "../base/errors.ts";
import { isNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { targetOf, type NamedTarget } from "../graph/target.ts";
import { forwardSignatureOf } from "../nn/builtin.ts";
import type { Module } from "../nn/module.ts";
import type { CallArguments } from "../base/naming.ts";
import {
  type ArgumentType,
  normalizationSchemasOf,
  type OperatorSchema,
  schemasOf,
  typeMatches,
} from "../functions/schemas.ts";
import { bind, parseSignature, type Parameter, type Signature } from "../functions/signature.ts";
import { signatureOf } from "../functions/table.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** The arguments of a call, with every default there. */
export interface NormalizedArguments {
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** How arguments are normalized. */
export interface NormalizeOptions {
  /** Whether all arguments become keyword arguments, in the order of the parameters. */
  readonly normalizeToOnlyUseKwargs?: boolean;
  /** The types of the positional arguments, where overloads must be told apart. */
  readonly argTypes?: readonly ArgumentType[];
  /** The types of the keyword arguments, where overloads must be told apart. */
  readonly kwargTypes?: Readonly<Record<string, ArgumentType>>;
}

const OPTIONS = ["normalizeToOnlyUseKwargs", "argTypes", "kwargTypes"] as const;

/**
 * The arguments of a call of a function, matched with its parameters, and its defaults:
 * `torch.fx.operator_schemas.normalize_function`. `undefined` where nothing is known of the function, its parameters cannot be
 * given by name, or no overload takes the arguments. Where several do and the types do not say which, it throws.
 *
 * @example
 * ```ts
 * normalizeFunction("torch.nn.functional.relu", { args: [x], kwargs: {} }); // { args: [x], kwargs: { inplace: false } }
 * ```
 */
export function normalizeFunction(
  target: string | NamedTarget,
  call: CallArguments,
  options: NormalizeOptions = {},
): NormalizedArguments | undefined {
  checkOptions("normalizeFunction", options, OPTIONS);
  const name = targetOf(target);
  const schemas = schemasOfFunction(name);
  if (schemas === undefined) {
    const signature = signatureOf(name);
    return signature === undefined ? undefined : normalized(parseSignature(signature), name, call, options);
  }
  const matching = schemas.filter((it) => isBindable(it.parameters, name, call));
  const [only] = matching;
  if (only === undefined) return undefined;
  if (matching.length === 1) return normalized(only.parameters, name, call, options);
  const { argTypes, kwargTypes } = options;
  if (argTypes === undefined && kwargTypes === undefined) throw ambiguous(name, matching);
  const types = { args: argTypes ?? [], kwargs: kwargTypes ?? {} };
  const chosen = schemas.find((it) => takesTypes(it, name, types));
  return chosen === undefined ? undefined : normalized(chosen.parameters, name, call, options);
}

/**
 * The arguments of a call of a module, matched with the parameters of its `forward`:
 * `torch.fx.operator_schemas.normalize_module`. `undefined` for a module that is none of `torch.nn`'s.
 *
 * @example
 * ```ts
 * normalizeModule(model, "conv", { args: [x], kwargs: {} }, { normalizeToOnlyUseKwargs: true }); // { args: [], kwargs: { input: x } }
 * ```
 */
export function normalizeModule(
  root: Module,
  path: string,
  call: CallArguments,
  options: NormalizeOptions = {},
): NormalizedArguments | undefined {
  checkOptions("normalizeModule", options, OPTIONS);
  const isModule = isObject(root) && "findAttribute" in root;
  checkGiven("normalizeModule", isModule && typeof path === "string", "a module and the path of one in it");
  const attribute = root.findAttribute(path);
  if (attribute?.kind !== "module") {
    throw fxError(
      "AttributeMissing",
      `Tried to normalize node with target ${path} but root did not have that target!`,
      {
        help: "give the module that the graph was traced from",
      },
    );
  }
  const signature = forwardSignatureOf(attribute.module);
  if (signature === undefined) return undefined;
  return normalized(parseSignature(signature), `${attribute.module.className}.forward`, call, options);
}

/**
 * The arguments of a node: `torch.fx.Node.normalized_arguments`. `undefined` for a node that calls neither a function nor a
 * module, and where {@link normalizeFunction} gives that.
 *
 * @example
 * ```ts
 * for (const node of gm.graph.nodes) {
 *   const pair = normalizedArguments(node, gm);
 *   if (pair !== undefined) [node.args, node.kwargs] = [pair.args as Arg[], pair.kwargs as Kwargs];
 * }
 * ```
 */
export function normalizedArguments(
  node: Node,
  root: Module,
  options: NormalizeOptions = {},
): NormalizedArguments | undefined {
  checkGiven("normalizedArguments", isNode(node), "a Node");
  const { op, target, args, kwargs } = node;
  const call = { args: [...args], kwargs: { ...kwargs } };
  checkOptions("normalizedArguments", options, OPTIONS);
  if (op === "call_function") return normalizeFunction(target, call, options);
  return op === "call_module" ? normalizeModule(root, target, call, options) : undefined;
}

/** How the names of functions begin that are operators. */
const PLACES: readonly string[] = ["torch.ops.aten.", ...OPERATOR_PLACES];

/** The overloads that a function stands for: all of an operator, or the one that is named; `undefined` for no operator. */
export function schemasOfFunction(target: string): readonly OperatorSchema[] | undefined {
  const [, own, ownOverload] = /^torch\.ops\.((?!aten\.)\w+\.\w+)(?:\.(\w+))?$/.exec(target) ?? [];
  if (own !== undefined) return overloadsOf(schemasOf(own), ownOverload);
  // Functions such as `math.ceil` stand for operators, too.
  const listed = target.includes(".") ? normalizationSchemasOf(target) : undefined;
  if (listed !== undefined) return listed;
  const place = PLACES.find((prefix) => target.startsWith(prefix));
  if (place === undefined) return undefined;
  const [operator = "", overload] = target.slice(place.length).split(".");
  // Only operators have overloads by name; `torch.nn.relu` is none.
  if (overload !== undefined && !target.startsWith("torch.ops.")) return undefined;
  return overloadsOf(normalizationSchemasOf(operator) ?? [], overload);
}

function overloadsOf(
  schemas: readonly OperatorSchema[],
  overload: string | undefined,
): readonly OperatorSchema[] | undefined {
  if (overload === undefined) return schemas.length === 0 ? undefined : schemas;
  return schemas.filter((it) => it.overload === (overload === "default" ? "" : overload));
}

/** The parameters of the one operator that may be given by position only and is normalized all the same. */
const FROM_TO = "input,from,to,generator";

function normalized(
  signature: Signature,
  name: string,
  call: CallArguments,
  { normalizeToOnlyUseKwargs: onlyKwargs = false }: NormalizeOptions,
): NormalizedArguments | undefined {
  if (!signature.every(isNamed) && signature.map((it) => it.name).join(",") !== FROM_TO) return undefined;
  const values = bind(signature, name, call);
  const count = onlyKwargs ? 0 : call.args.length;
  const named = signature.map((it, at) => [it.name, values[at]] as const);
  return { args: values.slice(0, count), kwargs: Object.fromEntries(named.slice(count)) };
}

function isNamed({ kind }: Parameter): boolean {
  return kind === "positional-or-keyword" || kind === "keyword";
}

/** Whether these parameters take the arguments of a call. */
export function isBindable(signature: Signature, name: string, call: CallArguments): boolean {
  try {
    bind(signature, name, call);
    return true;
  } catch {
    return false;
  }
}

/** Whether all parameters take arguments of these types. */
function takesTypes(
  { parameters }: OperatorSchema,
  name: string,
  types: { readonly args: readonly ArgumentType[]; readonly kwargs: Readonly<Record<string, ArgumentType>> },
): boolean {
  let bound: readonly unknown[];
  try {
    // A parameter that is not given keeps its default, of which nothing is asked.
    bound = bind(
      parameters.map((it) => ({ ...it, default: it.default === undefined ? undefined : UNASKED })),
      name,
      types,
    );
  } catch {
    return false;
  }
  return parameters.every((it, at) => bound[at] === UNASKED || typeMatches(it.type, bound[at] as ArgumentType));
}

/** Stands for a parameter whose type is not asked for; no type is called so. */
const UNASKED = "";

function ambiguous(name: string, matching: readonly OperatorSchema[]) {
  return fxError("SchemaMismatch", `Tried to normalize arguments to ${name} but the schema match was ambiguous!`, {
    op: name,
    notes: matching.map((it) => it.text),
    help: "give the types of the arguments as argTypes and kwargTypes",
  });
}
