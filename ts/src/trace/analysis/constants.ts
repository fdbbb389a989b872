/**
 * Values that are written out in the source: literals, and what this package offers for the values that JavaScript has no
 * literals for.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../../bindings/dtypes.ts";
import { type ArgInput, freezeArg, tuple } from "../../graph/args.ts";
import { dtype, float } from "../../base/values.ts";
import { bare, isNullish, keyName, type Syntax } from "./syntax.ts";

/** A value that was found. */
export interface Constant {
  readonly value: ArgInput | undefined;
}

/** The value of an expression that is written out, and nothing for one that must be computed. */
export function constantOf(node: Syntax): Constant | undefined {
  const it = bare(node);
  if (isNullish(it) && it.type !== "Literal") return { value: undefined };
  switch (it.type) {
    case "Literal":
      return it.value instanceof RegExp || it.regex ? undefined : { value: it.value };
    case "TemplateLiteral":
      return it.expressions.length === 0 ? { value: it.quasis[0]?.value.cooked ?? "" } : undefined;
    case "Identifier":
      return NUMBERS.has(it.name) ? { value: NUMBERS.get(it.name) } : undefined;
    case "UnaryExpression":
      return signed(it.operator, constantOf(it.argument)?.value);
    case "ArrayExpression": {
      const items = itemsOf(it.elements);
      return items && { value: items };
    }
    case "ObjectExpression":
      return objectOf(it.properties);
    case "MemberExpression": {
      const name = keyName(it.property, it.computed) ?? "";
      const isDType = referenced(it.object) === "torch" && Object.hasOwn(DTYPES, name);
      return isDType ? { value: dtype(name as DType) } : undefined;
    }
    case "CallExpression":
      return made(referenced(it.callee), itemsOf(it.arguments));
    default:
      return undefined;
  }
}

/** The name of what an expression refers to; bundlers write `(0, tracefx.float)` for an import. */
function referenced(node: Syntax): string | undefined {
  const it = bare(node);
  if (it.type === "Identifier") return it.name;
  if (it.type === "MemberExpression") return keyName(it.property, it.computed);
  const last = it.type === "SequenceExpression" ? it.expressions.at(-1) : undefined;
  return last === undefined ? undefined : referenced(last);
}

const NUMBERS: ReadonlyMap<string, number> = new Map([
  ["Infinity", Number.POSITIVE_INFINITY],
  ["NaN", Number.NaN],
]);

function signed(operator: string, value: ArgInput | undefined): Constant | undefined {
  switch (operator) {
    case "-":
      if (typeof value === "bigint") return { value: -value };
      return typeof value === "number" ? { value: -value } : undefined;
    case "+":
      return typeof value === "number" ? { value } : undefined;
    case "!":
      return typeof value === "boolean" || typeof value === "number" ? { value: !value } : undefined;
    default:
      return undefined;
  }
}

function itemsOf(nodes: readonly (Syntax | null)[]): ArgInput[] | undefined {
  const res: ArgInput[] = [];
  for (const node of nodes) {
    const value = node === null ? undefined : constantOf(node)?.value;
    if (value === undefined) return undefined;
    res.push(value);
  }
  return res;
}

function objectOf(properties: readonly Syntax[]): Constant | undefined {
  const res = new Map<string, ArgInput>();
  for (const property of properties) {
    if (property.type !== "Property" || property.kind !== "init") return undefined;
    const key = keyName(property.key, property.computed);
    const value = constantOf(property.value)?.value;
    if (key === undefined || value === undefined) return undefined;
    res.set(key, value);
  }
  return { value: freezeArg(res) };
}

/** What the makers of this package give. */
function made(name: string | undefined, items: readonly ArgInput[] | undefined): Constant | undefined {
  if (items === undefined) return undefined;
  const [first] = items;
  if (name === "tuple") return { value: tuple(...items) };
  if (items.length !== 1) return undefined;
  if (name === "float" && typeof first === "number") return { value: float(first) };
  const isDType = name === "dtype" && typeof first === "string" && Object.hasOwn(DTYPES, first);
  return isDType ? { value: dtype(first as DType) } : undefined;
}
