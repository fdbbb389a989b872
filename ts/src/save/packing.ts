/**
 * How the inputs and outputs of a graph are nested, as JSON.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { CodeGen } from "../graph/codegen/codegen.ts";
import { PyTreeCodeGen } from "../graph/codegen/pytree.ts";
import type { Graph } from "../graph/graph.ts";
import { InputPacking, OutputPacking, type PackedParameter, type PackedPart } from "../trace/packing.ts";
import { PytreeSpec } from "../trace/pytree.ts";
import type { Json } from "../fx/fields.ts";

/** A structure: a leaf, or a kind of container, what it needs besides its parts, and their structures. */
type SpecJson = "*" | readonly [type: string, context: Json, ...children: SpecJson[]];

/** What a graph that was traced from a function of nested values says of them. */
export interface PackingJson {
  readonly inputs: readonly {
    readonly kind: PackedParameter["kind"];
    readonly name: string;
    readonly parts: readonly { readonly name: string; readonly spec: SpecJson; readonly isOptional: boolean }[];
  }[];
  readonly output?: SpecJson;
}

/** The kinds of a parameter. */
const KINDS: readonly string[] = ["single", "rest", "options"] satisfies PackedParameter["kind"][];

/** Structures nested deeper than this are refused. */
const MAX_DEPTH = 500;

/**
 * What the code generator of a graph says of nested values: nothing for one that takes the inputs as they are, and `undefined` where it
 * cannot be told in JSON.
 */
export function packingOf({ codegen, bodyTransformer }: Graph): PackingJson | "none" | undefined {
  if (bodyTransformer !== undefined) return undefined;
  if (codegen.constructor === CodeGen) return "none";
  if (!(codegen instanceof PyTreeCodeGen) || codegen.constructor !== PyTreeCodeGen) return undefined;
  const { inSpec, outSpec } = codegen.info;
  if (!(inSpec instanceof InputPacking)) return undefined;
  if (outSpec !== undefined && !(outSpec instanceof OutputPacking)) return undefined;
  const inputs = inSpec.parameters.map(({ kind, name, parts }) => ({
    kind,
    name,
    parts: parts.map((part) => ({ ...part, spec: specJson(part.spec) })),
  }));
  return outSpec === undefined ? { inputs } : { inputs, output: specJson(outSpec.spec) };
}

/** The code generator that `packingOf` told of. */
export function restorePacking(json: Json): PyTreeCodeGen {
  const { inputs, output } = objectOf(json, ["inputs", "output"]);
  const inSpec = new InputPacking(listOf(inputs).map(parameterOf));
  const outSpec = output === undefined ? undefined : new OutputPacking(specOf(output));
  return new PyTreeCodeGen({ origArgs: inSpec.names, inSpec, outSpec });
}

function specJson({ type, context, children }: PytreeSpec): SpecJson {
  if (type === undefined) return "*";
  return [type, (context ?? null) as Json, ...children.map(specJson)];
}

function parameterOf(json: Json): PackedParameter {
  const { kind, name, parts } = objectOf(json, ["kind", "name", "parts"]);
  if (typeof name !== "string" || typeof kind !== "string" || !KINDS.includes(kind)) throw malformed();
  return { kind: kind as PackedParameter["kind"], name, parts: listOf(parts).map(partOf) };
}

function partOf(json: Json): PackedPart {
  const { name, spec, isOptional } = objectOf(json, ["name", "spec", "isOptional"]);
  if (typeof name !== "string" || typeof isOptional !== "boolean" || spec === undefined) throw malformed();
  return { name, spec: specOf(spec), isOptional };
}

function specOf(json: Json, depth = 0): PytreeSpec {
  if (json === "*") return new PytreeSpec(undefined, undefined, []);
  const [type, context = null, ...children] = listOf(json);
  if (typeof type !== "string" || depth > MAX_DEPTH) throw malformed();
  const specs = children.map((it) => specOf(it, depth + 1));
  if ((type === "dict" || type === "Map") && listOf(context).length !== specs.length) throw malformed();
  return new PytreeSpec(type, context ?? undefined, specs);
}

function listOf(json: Json | undefined): readonly Json[] {
  if (Array.isArray(json)) return json as readonly Json[];
  throw malformed();
}

function objectOf(json: Json, keys: readonly string[]): { readonly [key: string]: Json | undefined } {
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw malformed();
  if (Object.keys(json).some((key) => !keys.includes(key))) throw malformed();
  return json as { readonly [key: string]: Json };
}

function malformed() {
  return fxError("WireMalformed", "what the file says of the structure of inputs is not what tracefx writes");
}
