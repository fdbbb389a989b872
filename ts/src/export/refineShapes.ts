/**
 * Taking over what a violation suggests.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { Dim, type DimBounds, DimVar } from "./dim.ts";

/** A suggested fix: a number, a dimension with a range, or a dimension that is derived of one. */
type Fix =
  | { readonly kind: "size"; readonly size: number }
  | { readonly kind: "range"; readonly bounds: DimBounds }
  | { readonly kind: "derived"; readonly root: string; readonly factor: number; readonly offset: number };

const RANGE = /^(\w+) = Dim\('[^']*'(?:, min=(\d+))?(?:, max=(\d+|oo))?\)$/;
const FORMULA = /^(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?$/;

/**
 * The dynamic shapes with the fixes that the message of a violation suggests:
 * `torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes`.
 *
 * @example
 * ```ts
 * const shapes = { x: [Dim("a")], y: [Dim("b")] };
 * refineDynamicShapesFromSuggestedFixes("… Suggested fixes:\n  b = a", shapes); // both are a
 * ```
 */
export function refineDynamicShapesFromSuggestedFixes<T>(message: string, dynamicShapes: T): T {
  const isText = typeof message === "string";
  checkGiven("refineDynamicShapesFromSuggestedFixes", isText, "the message of an error as text");
  const lines = suggestedFixes(message);
  if (lines === undefined) {
    throw fxError(
      "InvalidOption",
      "Suggested fixes not found in error message given to refine_dynamic_shapes_from_suggested_fixes()",
    );
  }
  const fixes = new Map(
    lines.map((line) => {
      const fix = readFix(line);
      if (fix === undefined) throw fxError("InvalidOption", `the suggested fix ${line} is no dimension`);
      return fix;
    }),
  );
  const known = new Map<string, DimVar>();
  visit(dynamicShapes, (dim) => {
    const root = dim.root ?? dim;
    known.set(root.name, root);
    return dim;
  });
  return visit(dynamicShapes, (dim) => refined(dim, fixes, known)) as T;
}

/**
 * What the message of a violation suggests, as TypeScript has it: `_n = Dim("_n", { min: 1 })`, `n = _n.mul(2)`. What no `Dim` says, such as
 * `n = 10 - m`, stays as PyTorch writes it.
 */
export function fixesInTypeScript(message: string): string[] {
  return (suggestedFixes(message) ?? []).map((line) => {
    const fix = readFix(line);
    return fix === undefined ? line : `${fix[0]} = ${inTypeScript(...fix)}`;
  });
}

function inTypeScript(name: string, fix: Fix): string {
  switch (fix.kind) {
    case "size":
      return String(fix.size);
    case "range": {
      const bounds = Object.entries(fix.bounds).map(([end, value]) => `${end}: ${value}`);
      return bounds.length === 0 ? `Dim("${name}")` : `Dim("${name}", { ${bounds.join(", ")} })`;
    }
    case "derived": {
      const { root, factor, offset } = fix;
      const product = factor === 1 ? root : `${root}.mul(${factor})`;
      return offset === 0 ? product : `${product}.${offset < 0 ? "sub" : "add"}(${Math.abs(offset)})`;
    }
    default:
      return fix satisfies never;
  }
}

/** The lines that suggest something; undefined where the message has no such part. */
function suggestedFixes(message: string): string[] | undefined {
  const [, text] = message.split("Suggested fixes:");
  const lines = text?.trim().split("\n");
  return lines?.map((it) => it.trim()).filter((it) => /^\w+ = /.test(it));
}

/** A line that suggests something; undefined where that is no dimension. */
function readFix(line: string): [name: string, fix: Fix] | undefined {
  const range = RANGE.exec(line);
  if (range !== null) {
    const [, name = "", min, max] = range;
    const bounds = { ...(min !== undefined && { min: Number(min) }), ...(isNumber(max) && { max: Number(max) }) };
    return [name, { kind: "range", bounds }];
  }
  const at = line.indexOf(" = ");
  const [name, formula] = [line.slice(0, at), line.slice(at + 3)];
  if (isNumber(formula)) return [name, { kind: "size", size: Number(formula) }];
  const [, factor = "1", root, sign = "+", offset = "0"] = FORMULA.exec(formula) ?? [];
  if (root === undefined) return undefined;
  return [name, { kind: "derived", root, factor: Number(factor), offset: Number(`${sign}${offset}`) }];
}

function isNumber(text: string | undefined): boolean {
  return text !== undefined && /^\d+$/.test(text);
}

function refined(dim: DimVar, fixes: ReadonlyMap<string, Fix>, known: ReadonlyMap<string, DimVar>): DimVar | number {
  const fix = fixes.get(dim.name);
  if (fix === undefined) {
    const { root, factor, offset } = dim;
    if (root === undefined || !fixes.has(root.name)) return dim;
    return derived(refined(root, fixes, known), factor, offset);
  }
  switch (fix.kind) {
    case "size":
      return fix.size;
    case "range":
      return Dim(dim.name, fix.bounds);
    case "derived": {
      const range = fixes.get(fix.root);
      const root = range?.kind === "range" ? Dim(fix.root, range.bounds) : known.get(fix.root);
      if (root === undefined)
        throw fxError("InvalidOption", `the suggested fix of ${dim.name} has no root ${fix.root}`);
      return derived(root, fix.factor, fix.offset);
    }
    default:
      return fix satisfies never;
  }
}

function derived(root: DimVar | number, factor: number, offset: number): DimVar | number {
  if (typeof root === "number") return factor * root + offset;
  const product = factor === 1 ? root : root.mul(factor);
  return offset === 0 ? product : product.add(offset);
}

/** The structure with each dimension of a name replaced. */
function visit(value: unknown, replace: (dim: DimVar) => unknown): unknown {
  if (value instanceof DimVar) return replace(value);
  if (Array.isArray(value)) return value.map((it) => visit(it, replace));
  if (value instanceof Map) return new Map([...value].map(([key, it]) => [key, visit(it, replace)]));
  if (!isOptions(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, visit(it, replace)]));
}
