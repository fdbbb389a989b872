/** Programs that are opened to be called, without their graphs. */
import { expect, test } from "vitest";
import { type ExampleInputs, exportProgram, load, type Tensor, tensor, torch } from "../../src/index.ts";
import { loadModule } from "../../src/export/loading.ts";
import { bytesOf, fixture, refusal, tensorsOf } from "./fixtures.ts";

test.each(["digits_cnn", "cond_simple", "tied_and_views", "while_loop_hop", "dyn_derived__core"])(
  "%s gives what it gives with its graph",
  async (name) => {
    const recorded = tensorsOf(`${name}/inputs.safetensors`);
    const inputs = Array.from({ length: recorded.size }, (_, at) => recorded.get(`in${at}`));
    using program = await load(bytesOf(`${name}/model.pt2`));
    using whole = program.module();
    using alone = await loadModule(bytesOf(`${name}/model.pt2`));
    expect(alone.runFlat(inputs)).toEqual(whole.runFlat(inputs));
  },
);

test.each(["nested_io", "symint_inputs", "outputs_misc", "python_names"])(
  "%s takes its arguments as the module's forward does",
  async (name) => {
    using program = await load(bytesOf(`${name}/model.pt2`));
    const [args, kwargs] = program.exampleInputs as ExampleInputs;
    const given = Object.keys(kwargs).length === 0 ? args : [...args, kwargs];
    using whole = program.module();
    using alone = await loadModule(bytesOf(`${name}/model.pt2`));
    expect(alone(...given)).toEqual(whole(...given));
  },
);

test("a typed array has the sizes of the input, of which the notes of the graph tell alone", async () => {
  using model = await loadModule(bytesOf("cond_simple/model.pt2"));
  const x = Float32Array.from([1, 2, 3, 4, 5, 6]);
  expect(model(x, x)).toEqual(model(tensor(x, { shape: [2, 3] }), tensor(x, { shape: [2, 3] })));
});

test("it opens files by their paths, with the options of reading and of calling", async () => {
  using strict = await loadModule(fixture("digits_cnn/model.pt2"), { module: { precision: "strict" } });
  expect((strict(torch.zeros(1, 1, 8, 8)) as Tensor).shape).toEqual([1, 10]);
  const bound = loadModule(fixture("digits_cnn/model.pt2"), { limits: { nodes: 2 } });
  expect((await refusal(() => bound)).kind).toBe("LimitExceeded");
  const wrong = loadModule(fixture("digits_cnn/model.pt2"), { module: { precisoin: "strict" } as never });
  expect((await refusal(() => wrong)).message).toContain("precision");
  expect((await refusal(() => loadModule(new Uint8Array(10)))).code).toMatch(/^FX01/);
});

test("what needs the graph is refused, and says how to have it", async () => {
  using model = await loadModule(fixture("digits_cnn/model.pt2"));
  const { help } = await refusal(() => exportProgram(model as never, [torch.zeros(1, 1, 8, 8)]));
  expect(help).toContain("program.module()");
});

test("guards are always checked, and what says otherwise is refused by its name", async () => {
  const asked = { module: { checkGuards: false } as object };
  const { kind, message } = await refusal(() => loadModule(bytesOf("digits_cnn/model.pt2"), asked));
  expect([kind, message]).toEqual(["InvalidOption", expect.stringContaining("`checkGuards`")]);
});
