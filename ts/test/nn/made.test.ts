import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { FxError, float, init, type Module, nn, type Tensor, torch, tuple } from "../../src/index.ts";
import { builtinNameOf } from "../../src/nn/builtin.ts";
import { qualifiedNameOf } from "../../src/nn/qualifiedNames.ts";

/** What PyTorch made of the same arguments; see tests/oracle/gen_modules.py. */
interface Made {
  readonly module: string;
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly text?: string;
  readonly state?: Readonly<
    Record<string, { readonly dtype: string; readonly size: number[]; readonly sha256: string }>
  >;
  readonly error?: string;
}

interface Initialised {
  readonly function: string;
  readonly size: number[];
  readonly dtype: "float32" | "float64";
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly sha256: string;
}

const FIXTURES = new URL("../../../tests/fixtures/modules/", import.meta.url);
const classes = nn as unknown as Record<string, new (...args: unknown[]) => Module>;

beforeAll(() => init());

describe("a layer that is made", () => {
  for (const it of read<Made>("made.jsonl")) {
    const call = `${it.module}(${JSON.stringify([it.args, it.kwargs])})`;
    if (it.error === undefined) test(`prints and begins as in PyTorch: ${call}`, () => checkMade(it));
    else test(`is refused as in PyTorch: ${call}`, () => checkRefused(it));
  }
});

test("each class has the name that it has in PyTorch's programs", () => {
  const recorded = JSON.parse(readFileSync(new URL("classes.json", FIXTURES), "utf8")) as Record<string, string>;
  const own = Object.entries(classes).filter(([, it]) => typeof it === "function" && builtinNameOf(it) !== undefined);
  const named = own.map(([name, it]) => [name, qualifiedNameOf(Object.create(it.prototype as object) as Module)]);
  expect(named.length).toBeGreaterThan(130);
  expect(named).toEqual(own.map(([name]) => [name, recorded[name]]));
});

describe("an initialisation", () => {
  for (const it of read<Initialised>("init.jsonl")) {
    test(`gives PyTorch's values: ${it.function} ${JSON.stringify([it.size, it.dtype, it.args, it.kwargs])}`, () => {
      const functions = nn.init as unknown as Record<string, (...args: unknown[]) => Tensor>;
      const values = torch.zeros(it.size, { dtype: it.dtype });
      torch.manualSeed(0);
      const args = [...it.args.map(decoded).map(plain), ...optionsOf(it.kwargs, plain)];
      expect(functions[camelCase(it.function)]?.(values, ...args)).toBe(values);
      expect(digest(values)).toBe(it.sha256);
    });
  }
});

function checkMade(it: Made): void {
  torch.manualSeed(0);
  const module = make(it);
  expect(String(module)).toBe(it.text);
  const state = [...module.stateDict()].map(([name, value]) => [
    name,
    { dtype: value.dtype, size: [...value.shape], sha256: digest(value) },
  ]);
  expect(Object.fromEntries(state)).toEqual(it.state);
  expect(state.map(([name]) => name)).toEqual(Object.keys(it.state ?? {}));
}

function checkRefused(it: Made): void {
  let error: unknown;
  try {
    make(it);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(FxError);
  expect((error as FxError).reason).toBe(it.error);
}

function make({ module, args, kwargs }: Made): Module {
  const Class = classes[module];
  if (Class === undefined) throw new Error(`there is no ${module}`);
  return new Class(...args.map(decoded), ...optionsOf(kwargs));
}

function optionsOf(kwargs: Readonly<Record<string, unknown>>, each = (value: unknown): unknown => value): unknown[] {
  const entries = Object.entries(kwargs).map(([name, value]) => [camelCase(name), each(decoded(value))]);
  return entries.length === 0 ? [] : [Object.fromEntries(entries)];
}

function decoded(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const [[kind, inner] = []] = Object.entries(value);
  if (kind === "float") return float(inner as number);
  if (kind === "tuple") return tuple(...(inner as unknown[]).map(decoded));
  if (kind === "list") return (inner as unknown[]).map(decoded);
  return inner;
}

/** Initialisations take numbers as they are. */
function plain(value: unknown): unknown {
  return typeof value === "object" && value !== null && "value" in value ? value.value : value;
}

function camelCase(name: string): string {
  return name.replace(/(?<=[A-Za-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function digest({ data }: Tensor): string {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

function read<T>(name: string): T[] {
  const lines = readFileSync(new URL(name, FIXTURES), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as T);
}
