import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { DTYPES } from "../../../bindings/dtypes.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Tensor, tensorBytes } from "../../src/tensor/tensor.ts";
import { decodeGraph, decodeModule, encodeGraph, encodeModule } from "../../src/wire/codec.ts";
import { readOutline } from "../../src/wire/file.ts";
import { CALL_OPTIONS } from "../../src/wire/options.ts";
import { decodeProgram, encodeProgram } from "../../src/export/encoding/program.ts";
import { hostLayout } from "../../src/tensor/storageLayout.ts";
import { hostViews } from "../../src/wire/tensors.ts";
import { type Case, cases } from "./cases.ts";

const FOLDER = new URL("../../../tests/golden/wire/", import.meta.url);

function golden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`${name}.fxg`, FOLDER)));
}

function written({ content, options }: Omit<Case, "name">): Uint8Array {
  if (content instanceof Graph) return encodeGraph(content, options);
  if (content instanceof GraphModule) return encodeModule(content, options).bytes;
  return encodeProgram(content.program, hostLayout, options).bytes;
}

/** The storages that a golden file needs beside it: those of the same program with all its weights. */
function beside(name: string): Uint8Array[] {
  return encodeProgram(decodeProgram(golden(name.replace("_beside", "")))).storages.map(tensorBytes);
}

/** What a file holds, to be read: the same text as `crates/wire/tests/golden.rs` writes. */
function listing(file: Uint8Array, content: Case["content"]): string {
  const outline = readOutline(file);
  const lines = [`version ${outline.version.join(".")}${outline.hasChecksum ? ", checksum" : ""}`];
  for (const it of outline.sections) lines.push(`${it.name} at ${it.offset}: ${it.length} bytes`);
  const root = "program" in content ? content.program.graphModule : content;
  const modules: [string, Graph | GraphModule][] = root instanceof Graph ? [["", root]] : root.graphModules();
  for (const [path, module] of modules) {
    if (module instanceof GraphModule) {
      lines.push("", `${module.className} \`${path}\``);
      for (const name of module.attributes.keys()) lines.push(`  ${name}: ${module.attributes.get(name)?.kind}`);
    }
    lines.push("", `${module instanceof GraphModule ? module.graph : module}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Rust's listing without what JavaScript's tensors do not have: dtype, sizes and strides. */
function withoutViews(text: string): string {
  return text.replace(/^( {2}\S+: )(\w+).*$/gm, (_, name: string, kind: string) => name + kind.toLowerCase());
}

describe.each(cases())("$name", ({ name, content, options }) => {
  const file = golden(name);

  test("is what the API makes", () => {
    const made = written({ content, options });
    expect(listing(made, content)).toBe(withoutViews(readFileSync(new URL(`${name}.txt`, FOLDER), "utf8")));
    expect(Buffer.from(made).equals(file)).toBe(true);
  });

  test("is written as it was read", () => {
    const read = (): Case["content"] => {
      if (content instanceof Graph) return decodeGraph(file);
      if (content instanceof GraphModule) return decodeModule(file);
      return { program: decodeProgram(file, name.endsWith("_beside") ? hostViews(beside(name)) : undefined) };
    };
    expect(Buffer.from(written({ content: read(), options })).equals(file)).toBe(true);
  });
});

test("a program is read as it is in memory", () => {
  const made = cases().find((it) => it.name === "program")?.content as Exclude<Case["content"], Graph | GraphModule>;
  const { graphModule, ...parts } = decodeProgram(golden("program"));
  const { graphModule: madeModule, ...madeParts } = made.program;
  expect(String(graphModule.graph)).toBe(String(madeModule.graph));
  expect(plain(parts)).toEqual(plain(madeParts));
  expect(parts.state.get("weight")?.tensor).toBe(parts.state.get("tied")?.tensor);
});

/** The same with tensors as text. */
function plain(value: unknown): unknown {
  if (value instanceof Tensor) return `${value.dtype} ${value}`;
  if (value instanceof Map) return Array.from(value, ([key, it]) => [key, plain(it)]);
  if (Array.isArray(value)) return value.map(plain);
  const isRecord = typeof value === "object" && value !== null && value.constructor === Object;
  return isRecord ? Object.fromEntries(Object.entries(value).map(([key, it]) => [key, plain(it)])) : value;
}

test("views are read as row-major tensors", () => {
  const module = decodeModule(golden("module"));
  expect(listing(golden("module"), module)).toBe(withoutViews(readFileSync(new URL("module.txt", FOLDER), "utf8")));
  const shown = [...module.graphModules()].flatMap(([path, it]) =>
    [...it.attributes].flatMap(([name, attribute]) =>
      attribute.kind === "module" ? [] : [[path, name, attribute.tensor.dtype, attribute.tensor.toArray()]],
    ),
  );
  expect(shown).toEqual([
    [
      "",
      "weight",
      "float32",
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
    ],
    [
      "",
      "tied.weight",
      "float32",
      [
        [1, 4],
        [2, 5],
        [3, 6],
      ],
    ],
    ["", "__proto__", "int64", -(2n ** 63n)],
    [
      "",
      "broadcast",
      "float32",
      [
        [2, 3],
        [2, 3],
        [2, 3],
        [2, 3],
      ],
    ],
    ["", "odd", "uint8", [3, 5, 7, 9, 11]],
    ["first", "row", "float32", [4, 5, 6]],
    ["first", "empty", "int64", []],
  ]);
});

test("tensors may stay beside the file", () => {
  const module = decodeModule(golden("module_dense"));
  const { bytes, storages } = encodeModule(module, CALL_OPTIONS);
  const weights = storages.map(tensorBytes);
  expect(weights.map((it) => it.length)).toEqual([12, 0, 8]);
  expect(readOutline(bytes).sections.map((it) => it.name)).toEqual(["STRS", "MODS", "GRPH", "NAMS", "TENS"]);
  expect(encodeModule(decodeModule(bytes, hostViews(weights))).bytes).toEqual(encodeModule(module).bytes);
  expect(() => decodeModule(bytes)).toThrow(/TENS at byte \d+: the tensors are not in the file: it needs 3 storages/);
  expect(() => decodeModule(bytes, hostViews(weights.slice(0, 1)))).toThrow(/needs storage 1, and 1 were given/);
  expect(() => decodeModule(bytes, hostViews(weights.toReversed()))).toThrow(/leaves its storage of 8 bytes/);
});

test("tensors of the engine are written as the views that they are", () => {
  const module = decodeModule(golden("module"));
  const views = new Map(
    [
      ["weight", { strides: [3, 1], offset: 0 }],
      ["tied.weight", { strides: [1, 3], offset: 0 }],
      ["row", { strides: [1], offset: 3 }],
      ["broadcast", { strides: [0, 1], offset: 1 }],
    ].map(([name, view]) => [tensorNamed(module, name as string), view as { strides: number[]; offset: number }]),
  );
  const shared = { storage: "the storage of the weight", byteLength: 24 };
  const { bytes, storages } = encodeModule(module, CALL_OPTIONS, (it) => {
    const view = views.get(it);
    if (view !== undefined) return { ...shared, ...view };
    const layout = hostLayout(it);
    // The golden file has a storage that is longer than what looks at it.
    return it.dtype === "uint8" ? { ...layout, byteLength: 71, strides: [2], offset: 3 } : layout;
  });
  expect(Buffer.from(bytes).equals(golden("module_beside"))).toBe(true);
  expect(storages.map((it) => it.dtype)).toEqual(["float32", "int64", "uint8", "int64"]);
  const refused = (): unknown => encodeModule(module, {}, () => ({ ...shared, strides: [], offset: 0 }));
  expect(refused).toThrow(/the bytes of a tensor in the engine cannot be in the file/);
});

function tensorNamed(root: GraphModule, name: string): Tensor {
  for (const [, module] of root.graphModules()) {
    const found = module.attributes.get(name);
    if (found !== undefined && found.kind !== "module") return found.tensor;
  }
  throw new Error(`there is no tensor ${name}`);
}

test("dtypes are numbered in the order of their table", () => {
  expect(Object.values(DTYPES).map((it) => it.id)).toEqual(Object.keys(DTYPES).map((_, at) => at));
});
