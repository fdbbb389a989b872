import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { DTYPES } from "../../src/bindings/dtypes.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/graph/module.ts";
import { tensorBytes } from "../../src/tensor/tensor.ts";
import { decodeGraph, decodeModule, encodeGraph, encodeModule, tensorsOf } from "../../src/wire/codec.ts";
import { readOutline } from "../../src/wire/file.ts";
import { CALL_OPTIONS } from "../../src/wire/options.ts";
import { cases } from "./cases.ts";

const FOLDER = new URL("../../../tests/golden/wire/", import.meta.url);

function golden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`${name}.fxg`, FOLDER)));
}

/** What a file holds, to be read: the same text as `crates/wire/tests/golden.rs` writes. */
function listing(file: Uint8Array, content: Graph | GraphModule): string {
  const outline = readOutline(file);
  const lines = [`version ${outline.version.join(".")}${outline.hasChecksum ? ", checksum" : ""}`];
  for (const it of outline.sections) lines.push(`${it.name} at ${it.offset}: ${it.length} bytes`);
  const modules: [string, Graph | GraphModule][] = content instanceof Graph ? [["", content]] : content.modules();
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
    const made = content instanceof Graph ? encodeGraph(content, options) : encodeModule(content, options);
    expect(listing(made, content)).toBe(withoutViews(readFileSync(new URL(`${name}.txt`, FOLDER), "utf8")));
    expect(Buffer.from(made).equals(file)).toBe(true);
  });

  test("is written as it was read", () => {
    const again =
      content instanceof Graph ? encodeGraph(decodeGraph(file), options) : encodeModule(decodeModule(file), options);
    expect(Buffer.from(again).equals(file)).toBe(true);
  });
});

test("views are read as row-major tensors", () => {
  const module = decodeModule(golden("module"));
  expect(listing(golden("module"), module)).toBe(withoutViews(readFileSync(new URL("module.txt", FOLDER), "utf8")));
  const shown = [...module.modules()].flatMap(([path, it]) =>
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
  const weights = tensorsOf(module).map(tensorBytes);
  expect(weights.map((it) => it.length)).toEqual([12, 0, 8]);
  const file = encodeModule(module, CALL_OPTIONS);
  expect(readOutline(file).sections.map((it) => it.name)).toEqual(["STRS", "MODS", "GRPH", "NAMS", "TENS"]);
  expect(encodeModule(decodeModule(file, { weights }))).toEqual(encodeModule(module));
  expect(() => decodeModule(file)).toThrow(/TENS at byte \d+: the tensors are not in the file: it needs 3 storages/);
  expect(() => decodeModule(file, { weights: weights.toReversed() })).toThrow(/storage 0 has 8 bytes/);
});

test("dtypes are numbered in the order of their table", () => {
  expect(Object.values(DTYPES).map((it) => it.id)).toEqual(Object.keys(DTYPES).map((_, at) => at));
});
