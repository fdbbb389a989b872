/**
 * Operators of one's own, as they were defined so far.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { defineSchema, type SchemaParameter, schemasOf } from "../functions/schemas.ts";
import { hasSideEffect } from "../graph/impure.ts";
import { Definition } from "./operator.ts";

const definitions = new Map<string, Definition>();

/** Every operator that was defined. */
export function allDefinitions(): Iterable<Definition> {
  return definitions.values();
}

/** Takes an operator out that the engine refused. */
export function removeDefinition({ target }: Definition): void {
  definitions.delete(target);
}

/** Namespaces whose names mean something else; `prim` is PyTorch's. */
const RESERVED: ReadonlySet<string> = new Set(["prim", "higher_order", "operator", "math", "torch"]);

/** The parts of `namespace::name` or `namespace::name.overload`. */
export function parseName(qualname: string): { namespace: string; name: string; overload: string } {
  const [, namespace = "", name = "", overload = ""] =
    /^([A-Za-z_]\w*)::([A-Za-z_]\w*)(?:\.(\w+))?$/.exec(qualname) ?? [];
  if (name === "") {
    throw fxError("InvalidOption", `Expected \`qualname\` to be of the form "namespace::name", but got ${qualname}`, {
      help: 'the name of an operator has a namespace, such as "mylib::foo"',
    });
  }
  if (RESERVED.has(namespace)) {
    throw fxError("InvalidOption", `${namespace} is a reserved namespace`, {
      help: "define the operator in a namespace of your own",
    });
  }
  return { namespace, name, overload };
}

const TYPE =
  String.raw`(?:Tensor|int|SymInt|float|bool|SymBool|Scalar|complex|str|ScalarType|Layout|Device|MemoryFormat|Generator)` +
  String.raw`(?:\([a-z]!?\)|\?|\[\d*\])*`;
const PARAMETER = String.raw`(?:\*|${TYPE} [A-Za-z_]\w*(?: ?= ?(?:"[^"]*"|'[^']*'|\[[^\]]*\]|[\w.+-]+))?)`;
const RETURN = String.raw`${TYPE}(?: [A-Za-z_]\w*)?`;
const SCHEMA = new RegExp(
  String.raw`^\((${PARAMETER}(?:, ?${PARAMETER})*)?\) ?-> ?(?:${RETURN}|\((${RETURN}(?:, ?${RETURN})*)?\))$`,
);

/** Puts an operator into the table, of which nothing is known but the schema. */
export function addDefinition(qualname: string, schema: string, isReplaceable: boolean): Definition {
  const { namespace, name, overload } = parseName(qualname);
  const match = SCHEMA.exec(schema.trim());
  if (match === null) {
    throw fxError("SchemaMismatch", `expected schema to look like e.g. "(Tensor x) -> Tensor" but got "${schema}"`, {
      op: qualname,
    });
  }
  const text = `${qualname}${schema.trim()}`;
  const returns = schema.slice(schema.indexOf("->") + 2).trim();
  const nReturns = returns.startsWith("(") ? (match[2] ?? "").split(",").filter((it) => it !== "").length : 1;
  const target = `torch.ops.${namespace}.${name}`;
  const fullName = `${target}.${overload === "" ? "default" : overload}`;
  const old = definitions.get(fullName);
  const isKnown = namespace === "aten" && schemasOf(name).some((it) => it.overload === overload);
  if (isKnown || (old !== undefined && !(isReplaceable && old.isReplaceable))) {
    const what = `Tried to register an operator (${text}) with the same name and overload name multiple times`;
    throw fxError("InvalidOption", what, {
      op: fullName.slice("torch.ops.".length),
      notes: old === undefined ? [] : [`it was defined as ${old.schema}`],
      help: "give one of them another name or another overload name",
    });
  }
  const key = namespace === "aten" ? name : `${namespace}.${name}`;
  const parameters = defineSchema(key, `${name}${overload === "" ? "" : `.${overload}`}(${match[1] ?? ""})`);
  checkNames(parameters, text);
  const definition = new Definition(text, fullName, parameters, nReturns, isReplaceable);
  definitions.set(fullName, definition);
  // As in FX, what writes to an argument must not be removed.
  if (/\([a-z]!\)/.test(schema)) hasSideEffect(fullName);
  return definition;
}

function checkNames(parameters: readonly SchemaParameter[], schema: string): void {
  const names = parameters.map((it) => it.name);
  // `self` is called `input` here, so that the engine looks at these two.
  const twice = names.find((it, at) => names.indexOf(it) !== at && it !== "input");
  if (twice === undefined) return;
  throw fxError("SchemaMismatch", `the argument \`${twice}\` stands twice in the schema \`${schema}\``);
}

/** The operator of this name. */
export function definitionOf(qualname: string): Definition {
  const { namespace, name, overload } = parseName(qualname);
  const found = definitions.get(`torch.ops.${namespace}.${name}.${overload === "" ? "default" : overload}`);
  if (found !== undefined) return found;
  throw fxError("InvalidOption", `there is no operator ${qualname} of your own`, {
    help: `define it first: torch.library.define("${qualname}", "(Tensor x) -> Tensor")`,
  });
}
