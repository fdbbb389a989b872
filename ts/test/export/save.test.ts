import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { load, save, saveTo, torch } from "../../src/index.ts";
import { open } from "./fixtures.ts";

const DIR = mkdtempSync(join(tmpdir(), "tracefx-save-"));
afterAll(() => rmSync(DIR, { recursive: true }));

test("a program is saved, loaded and saved to the same bytes", async () => {
  const program = await open("digits_cnn");
  const bytes = save(program);
  const again = await load(bytes);
  expect(String(again.graph)).toBe(String(program.graph));
  expect(save(again)).toEqual(bytes);
});

test("edits of the graph and the state are saved", async () => {
  const program = await open("digits_cnn");
  const [name = "", tensor] = [...program.stateDict][0] ?? [];
  program.loadStateDict(new Map([[name, torch.zeros([...(tensor?.shape ?? [])])]]));
  const [relu] = program.graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
  const val = relu?.meta.get("val");
  if (relu !== undefined) relu.target = "torch.ops.aten.neg.default";
  relu?.meta.set("val", val);
  const again = await load(save(program, { extraFiles: { "labels.txt": "é" } }));
  expect(again.graph.findNodes({ op: "call_function", target: "torch.ops.aten.neg.default" })).toHaveLength(1);
  expect(
    again.stateDict
      .get(name)
      ?.toFloat32Array()
      .every((it) => it === 0),
  ).toBe(true);
  expect(again.extraFiles.get("labels.txt")).toBe("é");
});

test("a file is there whole or not at all", async () => {
  const program = await open("digits_cnn");
  const file = join(DIR, "model.pt2");
  const told: [number, number][] = [];
  await saveTo(program, file, { progress: (written, total) => told.push([written, total]) });
  const bytes = readFileSync(file);
  expect(told.at(-1)).toEqual([bytes.length, bytes.length]);
  expect(bytes.subarray(0, 200).toString("latin1")).toContain("model/data/weights/weight_0");
  const other = join(DIR, "other.pt2");
  const controller = new AbortController();
  const stopped = saveTo(program, other, { signal: controller.signal, progress: () => controller.abort() });
  await expect(stopped).rejects.toThrow("aborted");
  expect([existsSync(other), readdirSync(DIR)]).toEqual([false, ["model.pt2"]]);
});

test("a stream gets the same bytes, and is aborted where saving stops", async () => {
  const program = await open("digits_cnn");
  const pieces: Uint8Array[] = [];
  await saveTo(program, new WritableStream<Uint8Array>({ write: (piece) => void pieces.push(piece) }));
  expect(Buffer.concat(pieces).equals(save(program))).toBe(true);
  let aborted: unknown;
  const stream = new WritableStream<Uint8Array>({ abort: (reason) => void (aborted = reason) });
  const controller = new AbortController();
  const stopped = saveTo(program, stream, { signal: controller.signal, progress: () => controller.abort() });
  await expect(stopped).rejects.toThrow("aborted");
  expect(String(aborted)).toContain("aborted");
});

test("unknown options and places are refused", async () => {
  const program = await open("digits_cnn");
  expect(() => save(program, { extra: 1 } as never)).toThrow("save has no option `extra`");
  expect(() => save(program, { extraFiles: { "../a": "" } })).toThrow("cannot be called so");
  await expect(saveTo(program, 7 as never)).rejects.toThrow("cannot be saved there");
});
