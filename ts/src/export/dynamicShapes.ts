/**
 * What a user says of the sizes of all inputs, set beside the inputs.
 *
 * @module
 */
import { checkList } from "../base/given.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import type { Val } from "../graph/val.ts";
import { Tuple, ValueTuple } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { treeFlatten } from "../trace/pytree.ts";
import { DimHint, type DimSpec, DimVar } from "./dim.ts";
import { pythonText } from "./pythonText.ts";
import type { SessionInput } from "./shapes.ts";

/** What says which sizes are dynamic once it sees the inputs. */
export interface DynamicShapesBuilder {
  /** The same in the structure of the inputs. */
  dynamicShapes(argNames: readonly string[], inputs: readonly unknown[]): Readonly<Record<string, unknown>>;
}

/**
 * The dynamic sizes of inputs: by names of arguments or in their order, each a nested container as the argument is. In the
 * place of a tensor stand a list with something for each dimension, an object by the numbers of dimensions, or null.
 */
export type DynamicShapes = Readonly<Record<string, unknown>> | readonly unknown[] | DynamicShapesBuilder | null;

/**
 * The leaves of the inputs in their order, each with its source and what was said of its dimensions.
 *
 * @param argNames the names of the arguments, positional ones first
 * @param inputs the arguments in the same order
 * @throws {@link ExportError} in PyTorch's words where the structures differ, or something else is said than a size can be.
 */
export function resolveDynamicShapes(
  argNames: readonly string[],
  inputs: readonly unknown[],
  dynamicShapes: DynamicShapes = null,
): SessionInput[] {
  checkList("resolveDynamicShapes", "argNames", argNames);
  checkList("resolveDynamicShapes", "inputs", inputs);
  const resolver = new Resolver();
  const given = isBuilder(dynamicShapes) ? dynamicShapes.dynamicShapes(argNames, inputs) : dynamicShapes;
  const specs = byArgument(argNames, inputs, given);
  for (const [at, name] of argNames.entries()) {
    const path = Array.isArray(given) ? `[${at}]` : `['${name}']`;
    resolver.visit(inputs[at], specs === undefined ? ABSENT : specs[at], `L['${name}']`, path);
  }
  return resolver.inputs;
}

/** In the place of a specification where there is none at all. */
const ABSENT = Symbol("no dynamic shapes");

function isBuilder(value: DynamicShapes): value is DynamicShapesBuilder {
  return value !== null && typeof (value as Partial<DynamicShapesBuilder>).dynamicShapes === "function";
}

/** What is said of each argument; undefined where nothing is said of any. */
function byArgument(
  argNames: readonly string[],
  inputs: readonly unknown[],
  given: Readonly<Record<string, unknown>> | readonly unknown[] | null,
): readonly unknown[] | undefined {
  if (given === null) return undefined;
  if (Array.isArray(given)) {
    if (given.length === 0) return undefined;
    if (given.length !== argNames.length) {
      throw mismatch(`\`inputs\` has ${argNames.length} elements, but \`dynamic_shapes\` has ${given.length} elements`);
    }
    return given;
  }
  const named = given as Readonly<Record<string, unknown>>;
  const keys = Object.keys(named);
  if (keys.length === 0) return undefined;
  if (keys.toSorted().join() !== argNames.toSorted().join()) {
    const [only, ...others] = inputs;
    const forgot = others.length === 0 && isOptions(only) && !keys.includes(argNames[0] ?? "");
    const advice = forgot
      ? "Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to enclose `dynamic_shapes` " +
        "in a list/tuple?"
      : "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching " +
        "`inputs`.";
    throw wrong(
      `When \`dynamic_shapes\` is specified as a dict, its top-level keys must be the arg names ${pythonText(argNames)} ` +
        `of \`inputs\`, but here they are ${pythonText(keys)}. ${advice}`,
    );
  }
  return argNames.map((name) => named[name]);
}

class Resolver {
  readonly inputs: SessionInput[] = [];
  readonly #bounds = new Map<string, DimVar>();

  visit(value: unknown, spec: unknown, source: string, path: string): void {
    const parts = partsOf(value);
    if (parts === undefined) return this.#leaf(value, spec, source, path);
    const specs = spec === ABSENT ? undefined : partsOf(spec);
    if (spec !== ABSENT) checkStructure(parts, specs, path);
    for (const [key, part] of parts.items) {
      const step = typeof key === "number" ? `[${key}]` : `['${String(key)}']`;
      const said = specs === undefined ? ABSENT : specs.items.get(key);
      this.visit(part, said, `${source}${step}`, `${path}${step}`);
    }
  }

  #leaf(value: unknown, spec: unknown, source: string, path: string): void {
    const leaf = value as Tensor | Val;
    if (spec === ABSENT || spec === null || spec === undefined) this.inputs.push({ source, value: leaf });
    else if (value instanceof Tensor) this.inputs.push({ source, value, dims: this.#dims(value.shape, spec, path) });
    else this.inputs.push({ source, value: leaf, dims: [numberSpec(value, spec, path)] });
  }

  #dims(shape: readonly number[], spec: unknown, path: string): DimSpec[] {
    const dims: DimSpec[] = shape.map(() => null);
    const place = `specified at \`dynamic_shapes${path}\``;
    if (isSequence(spec)) {
      const items = [...(spec as Iterable<unknown>)];
      if (items.length !== dims.length) {
        throw wrong(
          `Expected dynamic shape spec ${pythonText(spec)} ${place} to have the same length as the actual tensor shape ` +
            `torch.Size(${pythonText(shape)}) (expected ${dims.length}, but got ${items.length} instead)`,
        );
      }
      items.forEach((it, at) => {
        dims[at] = this.#dim(it, () => `#${at}`, spec, place);
      });
      return dims;
    }
    const entries = spec instanceof Map ? [...spec] : isOptions(spec) ? Object.entries(spec) : undefined;
    if (entries === undefined) {
      throw wrong(
        `Unexpected input tensor shape ${typeof spec === "string" ? spec : pythonText(spec)} ${place} (expected either a list/tuple of dimensions, or a ` +
          "dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)",
      );
    }
    for (const [key, it] of entries) {
      const at = Number(key);
      if (!Number.isInteger(at) || at < 0 || at >= dims.length) {
        throw wrong(`there is no dimension ${String(key)} in the input tensor shape ${pythonText(shape)}, ${place}`);
      }
      dims[at] = this.#dim(it, () => `mapped to index ${at}`, spec, place);
    }
    return dims;
  }

  #dim(dim: unknown, which: () => string, spec: unknown, place: string): DimSpec {
    if (dim === null || dim === undefined) return null;
    if (dim instanceof DimHint || Number.isSafeInteger(dim)) return dim as DimHint | number;
    if (dim instanceof DimVar) {
      this.#checkBounds(dim);
      return dim;
    }
    throw wrong(
      `Unexpected dimension ${which()} in input tensor shape ${pythonText(spec)} ${place} (expected None, an int, a Dim, ` +
        `Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got ${pythonText(dim)} instead)`,
    );
  }

  /** Dimensions of one name are one. */
  #checkBounds(dim: DimVar): void {
    const known = this.#bounds.get(dim.name);
    if (known === undefined) {
      this.#bounds.set(dim.name, dim);
    } else if (known.min !== dim.min || known.max !== dim.max) {
      throw wrong(
        `Found different definitions ${known.readable()} and ${dim.readable()} for the same symbolic dimension ${dim}!`,
      );
    }
  }
}

/** What is said of an input that is no tensor. */
function numberSpec(value: unknown, spec: unknown, path: string): DimSpec {
  const isInt = Number.isSafeInteger(value) || typeof value === "bigint";
  if (isInt && spec instanceof DimVar) {
    throw wrong("Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead.");
  }
  if (isInt && (spec instanceof DimHint || Number.isSafeInteger(spec))) return spec as DimHint | number;
  throw wrong(
    `Cannot associate shape ${pythonText(spec)} specified at \`dynamic_shapes${path}\` to non-tensor type ` +
      `${pythonType(value)} at \`inputs${path}\` (expected None)`,
  );
}

/** A container and what is in it. */
interface Parts {
  readonly type: string;
  readonly items: ReadonlyMap<string | number, unknown>;
}

function isSequence(value: unknown): boolean {
  return Array.isArray(value) || value instanceof ValueTuple || value instanceof Tuple;
}

/** The parts of a container; undefined for anything else. What only pytrees know is a list of its parts. */
function partsOf(value: unknown): Parts | undefined {
  if (isSequence(value)) {
    const type = Array.isArray(value) && !(value instanceof ValueTuple) ? "list" : "tuple";
    return { type, items: new Map([...(value as Iterable<unknown>)].entries()) };
  }
  if (value instanceof Map) return { type: "dict", items: value as ReadonlyMap<string, unknown> };
  if (isOptions(value)) return { type: "dict", items: new Map(Object.entries(value)) };
  const [parts, spec] = treeFlatten(value, { isLeaf: (it) => it !== value });
  return spec.isLeaf ? undefined : { type: "list", items: new Map(parts.entries()) };
}

function checkStructure(parts: Parts, specs: Parts | undefined, path: string): void {
  const [input, shapes] = [`\`inputs${path}\``, `\`dynamic_shapes${path}\``];
  const kind = (it: Parts): string => `<class '${it.type}'>`;
  if (specs === undefined) throw mismatch(`${input} is a ${kind(parts)}, but ${shapes} is not`);
  // JavaScript writes tuples as lists.
  if (parts.type !== specs.type && (parts.type === "dict" || specs.type === "dict")) {
    throw mismatch(`${input} is a ${kind(parts)}, but ${shapes} is a ${kind(specs)}`);
  }
  const [n, nGiven] = [parts.items.size, specs.items.size];
  if (n !== nGiven) throw mismatch(`${input} has ${n} elements, but ${shapes} has ${nGiven} elements`);
  const [keys, given] = [[...parts.items.keys()], [...specs.items.keys()]];
  if (!keys.every((it) => specs.items.has(it))) {
    throw mismatch(`${input} has keys ${pythonText(keys)}, but ${shapes} has keys ${pythonText(given)}`);
  }
}

function pythonType(value: unknown): string {
  const names: Record<string, string> = { number: "int", bigint: "int", boolean: "bool", string: "str" };
  if (value === null || value === undefined) return "<class 'NoneType'>";
  if (typeof value === "number" && !Number.isInteger(value)) return "<class 'float'>";
  return `<class '${names[typeof value] ?? value.constructor?.name ?? "object"}'>`;
}

function mismatch(what: string): FxError {
  return wrong(`Detected mismatch between the structure of \`inputs\` and \`dynamic_shapes\`: ${what}`);
}

function wrong(what: string): FxError {
  return fxError("DynamicShapes", what, {
    help: "give the dynamic shapes the structure of the inputs, with a list or an object of dimensions for each tensor",
  });
}
