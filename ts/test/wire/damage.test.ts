import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FxError } from "../../src/base/errors.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { tensorBytes } from "../../src/tensor/tensor.ts";
import { decodeGraph, decodeModule, encodeGraph, encodeModule } from "../../src/wire/codec.ts";
import { readOutline } from "../../src/wire/file.ts";
import type { EncodeOptions } from "../../src/wire/options.ts";
import { decodeProgram, encodeProgram } from "../../src/export/encoding/program.ts";
import { SectionWriter } from "../../src/wire/sections.ts";
import { hostLayout } from "../../src/tensor/storageLayout.ts";
import { hostViews, type ViewTensor } from "../../src/wire/tensors.ts";
import { type Case, cases } from "./cases.ts";

/** A golden file without its checksum, so that changes of it are looked at. */
function unchecked({ content, options }: Case): { bytes: Uint8Array; viewOf: ViewTensor | undefined } {
  const changed: EncodeOptions = { ...options, checksum: false };
  if (content instanceof Graph) return { bytes: encodeGraph(content, changed), viewOf: undefined };
  const isModule = content instanceof GraphModule;
  const { bytes, storages } = isModule
    ? encodeModule(content, changed)
    : encodeProgram(content.program, hostLayout, changed);
  return { bytes, viewOf: options.weights === false ? hostViews(storages.map(tensorBytes)) : undefined };
}

/** Whether a file is read. Whatever is wrong with it is an error of ours. */
function accepts({ content }: Case, bytes: Uint8Array, viewOf: ViewTensor | undefined): boolean {
  try {
    if (content instanceof Graph) decodeGraph(bytes);
    else if (content instanceof GraphModule) decodeModule(bytes, viewOf);
    else decodeProgram(bytes, viewOf);
    return true;
  } catch (error) {
    if (error instanceof FxError) return false;
    throw error;
  }
}

/** The bytes of `flips.txt` of one file: which flips of a bit the engine accepts. */
function acceptedByEngine(name: string): Map<number, number> {
  const text = readFileSync(new URL("../../../tests/golden/wire/flips.txt", import.meta.url), "utf8");
  const line = text.split("\n").find((it) => it.startsWith(`${name} `) || it === name) ?? "";
  const entries = line
    .split(" ")
    .slice(1)
    .map((it) => it.split(":"));
  return new Map(entries.map(([at, bits]) => [Number(at), Number.parseInt(bits ?? "", 16)]));
}

test("the answer of a pass is no file", () => {
  const writer = new SectionWriter({});
  writer.graphs([new Graph()]);
  writer.section("EDIT", () => {});
  expect(() => decodeGraph(writer.finish())).toThrow(/the answer of a pass/);
});

describe.each(cases())("$name", (it) => {
  const { bytes, viewOf } = unchecked(it);

  test("cut at any byte is refused", () => {
    expect(accepts(it, bytes, viewOf)).toBe(true);
    for (let length = 0; length < bytes.length; length++) {
      expect(accepts(it, bytes.subarray(0, length), viewOf)).toBe(false);
    }
  });

  test("with a flipped bit is read or refused as by the engine", () => {
    const engine = acceptedByEngine(it.name);
    const sections = readOutline(bytes).sections;
    const tensorsAt = sections.find((section) => section.name === "TENS")?.offset ?? 0;
    const differences: string[] = [];
    for (let at = 0; at < bytes.length; at++) {
      let accepted = 0;
      for (let bit = 0; bit < 8; bit++) {
        bytes[at] = (bytes[at] as number) ^ (1 << bit);
        if (accepts(it, bytes, viewOf)) accepted |= 1 << bit;
        bytes[at] = (bytes[at] as number) ^ (1 << bit);
      }
      const section = sections.find(({ offset, length }) => offset <= at && at < offset + length)?.name;
      // Only the engine understands expressions, and knows how long the storages beside the file are.
      const isLength = it.name.endsWith("_beside") && section === "TENS" && at < tensorsAt + 32;
      // The engine's answers are from a machine of 64 bits; a size beyond 32 bits is refused here, even of no elements.
      const isHighWord = section === "TENS" && at % 8 >= 4 && accepted === 0;
      if (section === "SYMS" || isLength || isHighWord || accepted === (engine.get(at) ?? 0)) continue;
      differences.push(`${section} at ${at}: ${accepted.toString(16)}, the engine ${engine.get(at)?.toString(16)}`);
    }
    expect(differences).toEqual([]);
  }, 60_000);

  test("with a word of ones or zeros is read or refused", () => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at + 4 <= bytes.length; at += 4) {
      const word = view.getUint32(at, true);
      for (const value of [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]) {
        view.setUint32(at, value, true);
        accepts(it, bytes, viewOf);
      }
      view.setUint32(at, word, true);
    }
  });
});
