/** Files that lie: each is a typed error, and the engine goes on. */
import { crc32, deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ArchiveError, FxError, WireError } from "../../src/base/errors.ts";
import { load } from "../../src/export/load.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { bytesOf, open, refusal } from "./fixtures.ts";

const PROGRAM = bytesOf("digits_cnn/model.pt2");

async function expectAlive(): Promise<void> {
  using model = (await load(PROGRAM)).module();
  expect(model(tensor(new Float32Array(64), { shape: [1, 1, 8, 8] }))).toBeDefined();
}

interface Entry {
  readonly name: string;
  readonly data: Uint8Array;
  readonly deflated?: boolean;
}

/** A zip file, written by hand so that it can lie. */
function zip(entries: readonly Entry[]): Uint8Array<ArrayBuffer> {
  const [parts, directory]: [Buffer[], Buffer[]] = [[], []];
  let at = 0;
  for (const { name, data, deflated = false } of entries) {
    const bytes = deflated ? deflateRawSync(data) : Buffer.from(data);
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(deflated ? 8 : 0, 8);
    head.writeUInt32LE(crc32(data), 14);
    head.writeUInt32LE(bytes.length, 18);
    head.writeUInt32LE(data.length, 22);
    head.writeUInt16LE(name.length, 26);
    const record = Buffer.alloc(46);
    record.writeUInt32LE(0x02014b50, 0);
    head.copy(record, 10, 8, 28);
    record.writeUInt32LE(at, 42);
    directory.push(record, Buffer.from(name));
    parts.push(head, Buffer.from(name), bytes);
    at += 30 + name.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...parts, ...directory, end]));
}

describe("a damaged archive", () => {
  it("is refused wherever it is cut", async () => {
    for (let part = 0; part < 32; part++) {
      const cut = PROGRAM.slice(0, Math.floor((PROGRAM.length * part) / 32));
      expect(await refusal(() => load(cut))).toBeInstanceOf(ArchiveError);
    }
    await expectAlive();
  });

  it("is refused or reads as before when a bit is flipped", async () => {
    const text = String((await load(PROGRAM)).graph);
    for (let at = 7; at < PROGRAM.length; at += 997) {
      const flipped = PROGRAM.slice();
      flipped[at] = (flipped[at] as number) ^ (1 << (at % 8));
      const outcome = await load(flipped).then(
        (program) => String(program.graph),
        (error: unknown) => error,
      );
      if (outcome !== text) expect(outcome).toBeInstanceOf(FxError);
    }
    await expectAlive();
  });

  it("is named when it is something else", async () => {
    const html = new TextEncoder().encode("<!doctype html>");
    expect((await refusal(() => load(html))).help).toContain("URL");
    expect((await refusal(() => load(new Uint8Array()))).kind).toBe("ArchiveMalformed");
    const torchscript = zip([{ name: "model/data.pkl", data: Buffer.from("\x80\x02N.", "latin1") }]);
    expect((await refusal(() => load(torchscript))).kind).toBe("ArchiveWrongKind");
  });
});

describe("a bomb", () => {
  it("of zip is refused before it is inflated", async () => {
    const bomb = zip([
      { name: "a/archive_format", data: Buffer.from("pt2") },
      { name: "a/models/model.json", data: new Uint8Array(1 << 24), deflated: true },
    ]);
    expect(bomb.length).toBeLessThan(1 << 16);
    expect((await refusal(() => load(bomb))).kind).toBe("ArchiveCompressed");
    await expectAlive();
  });

  it("of pickle is refused, and runs nothing", async () => {
    const laughs = pickleOf("(lp0\n(g0\ng0\ng0\ng0\nlp1\n.");
    const command = pickleOf("cos\nsystem\n(S'touch /tmp/tracefx-was-here'\ntR.");
    for (const bytes of [laughs, command]) {
      const error = await refusal(() => load(bytes));
      expect(error).toBeInstanceOf(ArchiveError);
    }
    await expectAlive();
  });

  it("of nested JSON is refused without a stack overflow", async () => {
    const deep = `${'{"graph_module":'.repeat(50_000)}0${"}".repeat(50_000)}`;
    const bytes = oldArchive({ json: deep });
    expect(await refusal(() => load(bytes))).toBeInstanceOf(ArchiveError);
    await expectAlive();
  });
});

describe("a program that contradicts itself", () => {
  it("is refused when a node uses itself, in the archive", async () => {
    const node = {
      target: "torch.ops.aten.relu.default",
      inputs: [{ name: "self", arg: { as_tensor: { name: "y" } }, kind: 1 }],
      outputs: [{ as_tensor: { name: "y" } }],
      metadata: {},
    };
    const meta = { dtype: 7, sizes: [{ as_int: 2 }], requires_grad: false, device: { type: "cpu", index: null } };
    const value = { ...meta, strides: [{ as_int: 1 }], storage_offset: { as_int: 0 }, layout: 7 };
    const graph = {
      inputs: [],
      outputs: [{ as_tensor: { name: "y" } }],
      nodes: [node],
      tensor_values: { y: value },
      sym_int_values: {},
      sym_bool_values: {},
    };
    const signature = { input_specs: [], output_specs: [{ user_output: { arg: { as_tensor: { name: "y" } } } }] };
    const spec = '[1, {"type": null, "context": null, "children_spec": []}]';
    const calls = [{ fqn: "", signature: { inputs: [], outputs: [], in_spec: spec, out_spec: spec } }];
    const program = {
      graph_module: { graph, signature, module_call_graph: calls },
      opset_version: { aten: 10 },
      range_constraints: {},
      schema_version: { major: 8, minor: 2 },
    };
    const error = await refusal(() => load(oldArchive({ json: JSON.stringify(program) })));
    expect(error).toBeInstanceOf(FxError);
    expect(error.message).toMatch(/y/);
    await expectAlive();
  });

  it("is refused when a graph in memory is cyclic", async () => {
    const program = await open("digits_cnn");
    const [relu] = program.graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
    if (relu === undefined) throw new Error("the program has a relu");
    relu.args = [relu];
    expect((await refusal(() => program.module())).kind).toBe("GraphInvalid");
    await expectAlive();
  });

  it("is refused when an .fxg is cut, flipped, or has a tensor outside its storage", async () => {
    const file = (await load(PROGRAM)).toFxg();
    for (let part = 0; part < 32; part++) {
      const cut = file.slice(0, Math.floor((file.length * part) / 32));
      expect(await refusal(() => load(cut))).toBeInstanceOf(FxError);
    }
    for (let at = 5; at < file.length; at += 499) {
      const flipped = file.slice();
      flipped[at] = (flipped[at] as number) ^ (1 << (at % 8));
      expect(await refusal(() => load(flipped))).toBeInstanceOf(FxError);
    }
    expect(await refusal(() => load(file.slice(0, 40)))).toBeInstanceOf(WireError);
    await expectAlive();
  });
});

/** An archive as PyTorch 2.7 wrote it, with this pickle for its state. */
function pickleOf(text: string): Uint8Array<ArrayBuffer> {
  const inner = zip([
    { name: "archive/data.pkl", data: Buffer.from(text, "latin1") },
    { name: "archive/version", data: Buffer.from("3\n") },
  ]);
  return oldArchive({ state: inner });
}

function oldArchive({ json, state }: { readonly json?: string; readonly state?: Uint8Array }): Uint8Array<ArrayBuffer> {
  const empty = zip([
    { name: "archive/data.pkl", data: Buffer.from("\x80\x02}.", "latin1") },
    { name: "archive/version", data: Buffer.from("3\n") },
  ]);
  return zip([
    { name: "serialized_exported_program.json", data: Buffer.from(json ?? "{}") },
    { name: "serialized_state_dict.pt", data: state ?? empty },
    { name: "serialized_constants.pt", data: empty },
    { name: "serialized_example_inputs.pt", data: empty },
    { name: "version", data: Buffer.from("8.7") },
  ]);
}
