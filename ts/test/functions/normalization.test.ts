import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FxError } from "../../src/base/errors.ts";
import type { NormalizeOptions } from "../../src/fx/normalize.ts";
import { type ArgumentType, typeMatches } from "../../src/functions/schemas.ts";
import { isDefined } from "../../src/functions/table.ts";
import { Graph } from "../../src/graph/graph.ts";
import { Node } from "../../src/graph/node.ts";
import { normalizeFunction } from "../../src/index.ts";
import { complex, device, DTypeArg, Float, float, Tuple } from "../../src/base/values.ts";

/** What `tests/oracle/gen_normalization.py` recorded; it says how. */
const FIXTURES = new URL("../../../tests/fixtures/normalize/", import.meta.url);

type Encoded = null | boolean | number | string | Encoded[] | { readonly [key: string]: Encoded };
type Answer = string | null;
type Call = readonly [args: Encoded[], kwargs: Record<string, Encoded>, answers: Answer[]];

interface Line {
  readonly functions: Readonly<Record<string, readonly string[]>>;
  readonly calls: readonly Call[];
}

const graph = new Graph();
const nodes = new Map(["x", "y", "z", "u", "v", "w"].map((name) => [name, graph.placeholder(name)]));

function decode(value: Encoded): unknown {
  if (typeof value === "string" && value.startsWith("$")) return nodes.get(value.slice(1));
  if (Array.isArray(value)) return value.map(decode);
  if (value === null || typeof value !== "object") return value;
  if ("float" in value) return float(value["float"] as number);
  if ("device" in value) return device(value["device"] as string);
  if ("complex" in value) return complex(...(value["complex"] as [number, number]));
  throw new Error(`${JSON.stringify(value)} is not understood`);
}

function encode(value: unknown): unknown {
  if (value instanceof Node) return `$${value.name}`;
  if (value instanceof Float) return { float: value.valueOf() };
  if (value instanceof Tuple) return { tuple: Array.from(value, encode) };
  if (value instanceof DTypeArg) return { dtype: value.name };
  if (typeof value === "number" && !Number.isInteger(value)) return { float: value };
  if (value !== null && typeof value === "object" && Symbol.iterator in value) return Array.from(value as [], encode);
  return value;
}

/** An answer with its defaults as `JSON.stringify` writes them. */
function canonical(written: Answer): Answer {
  if (written === null) return null;
  return written.replaceAll(/=([^;]*)/g, (_, value: string) => `=${JSON.stringify(JSON.parse(value))}`);
}

function typeOf(value: Encoded): ArgumentType {
  if (value === null) return "None";
  if (Array.isArray(value)) return `${typeOf(value[0] ?? null)}[]` as ArgumentType;
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "number":
      return "int";
    case "string":
      return value.startsWith("$") ? "Tensor" : "str";
    case "object":
      return Object.keys(value)[0] as ArgumentType;
  }
}

/** What a call becomes, as the fixture writes it. */
function answer(target: string, [givenArgs, givenKwargs]: Call, types: NormalizeOptions): Answer {
  const args = givenArgs.map(decode);
  const kwargs = Object.fromEntries(Object.entries(givenKwargs).map(([name, it]) => [name, decode(it)]));
  try {
    const res = normalizeFunction(target, { args, kwargs }, { ...types, normalizeToOnlyUseKwargs: true });
    const kept = normalizeFunction(target, { args, kwargs }, types);
    if (res === undefined) return kept === undefined ? null : "only by keyword";
    const values = Object.entries(res.kwargs);
    const { args: first, kwargs: rest } = kept ?? { args: [], kwargs: {} };
    const joined = [...first.map((it, at) => [values[at]?.[0], it]), ...Object.entries(rest)];
    const isSame = joined.every(([name, it], at) => {
      const [wantedName, value] = values[at] ?? [];
      return name === wantedName && (it === value || JSON.stringify(encode(it)) === JSON.stringify(encode(value)));
    });
    if (res.args.length > 0 || first.length !== args.length || !isSame) return "otherwise by position";
    const parts = values.map(([name, value], at) => {
      const given = at < args.length ? args[at] : kwargs[name];
      return given === value && given !== undefined ? name : `${name}=${JSON.stringify(encode(value))}`;
    });
    return parts.join(";");
  } catch (error) {
    if (!(error instanceof FxError)) throw error;
    return /the schema match was ambiguous/.test(error.message) ? "ambiguous" : "TypeError";
  }
}

describe("calls are normalized as torch.fx does", () => {
  const lines = readFileSync(new URL("calls.jsonl", FIXTURES), "utf8").trim().split("\n");
  const all = lines.flatMap((line) => {
    const { functions, calls } = JSON.parse(line) as Line;
    const names = Object.entries(functions).flatMap(([place, own]) => own.map((name) => `${place}.${name}`));
    return names.flatMap((name) => calls.map((call) => [name, call] as const));
  });

  test.each(["without types", "with types"])("%s", (kind) => {
    const found: string[] = [];
    const wanted: string[] = [];
    for (const [name, call] of all) {
      // Functions that are written in Python are those that there are here.
      if (/^torch\.(nn\.)?functional\./.test(name) && !isDefined(name)) continue;
      const [args, kwargs, answers] = call;
      const types: NormalizeOptions =
        kind === "without types"
          ? {}
          : {
              argTypes: args.map(typeOf),
              kwargTypes: Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, typeOf(it)])),
            };
      const at = kind === "without types" ? 0 : 1;
      const expected = canonical((answers.length === 1 ? answers[0] : answers[at]) ?? null);
      const actual = answer(name, call, types);
      if (actual === expected) continue;
      const written = `${name} ${JSON.stringify(args)} ${JSON.stringify(kwargs)}`;
      found.push(`${written}: ${actual}`);
      wanted.push(`${written}: ${expected}`);
    }
    expect(all.length).toBeGreaterThan(8000);
    expect(found).toEqual(wanted);
  });
});

test("types match as torch.fx says", () => {
  const types = JSON.parse(readFileSync(new URL("types.json", FIXTURES), "utf8")) as Record<string, string[]>;
  const names = ["Tensor", "int", "float", "bool", "complex", "str", "None", "dtype", "device", "layout"];
  const lists = ["Tensor[]", "int[]", "float[]", "bool[]", "complex[]", "str[]"];
  const all = [...names, "memory_format", ...lists] as ArgumentType[];
  for (const [type, taken] of Object.entries(types)) {
    const matching = all.filter((it) => typeMatches(type, it));
    expect(new Set(matching), type).toEqual(new Set(taken.filter((it) => !it.startsWith("tuple"))));
    // A tuple of equal types is taken where a list is.
    const tuples = taken.filter((it) => it.startsWith("tuple")).map((it) => `${it.slice(6, -1)}[]`);
    expect(tuples, type).toEqual(taken.filter((it) => it.endsWith("[]")));
  }
});
