import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FxError, GraphError, NotImplementedError } from "../../src/base/errors.ts";
import type { GraphModule } from "../../src/fx/graphModule.ts";
import { CSEPass, mergeGetitems } from "../../src/rewrite/enginePasses.ts";
import { GraphSignature } from "../../src/export/signature.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { fixture, open, refusal } from "./fixtures.ts";

const programs = readdirSync(fixture("")).filter((name) => readdirSync(fixture(name)).includes("program.txt"));

describe("a program", () => {
  it.each(programs)("prints %s as PyTorch prints it", async (name) => {
    const program = await open(name);
    expect(String(program)).toBe(readFileSync(fixture(`${name}/program.txt`), "utf8"));
    expect(String(program)).toContain(String(program.graphSignature).replaceAll("\n", "\n    "));
    program.validate();
  });

  it("is held to the rules of its dialect", async () => {
    const program = await open("digits_cnn");
    expect(program.dialect).toBe("TRAINING");
    const { graph } = program;
    const output = graph.outputNode();
    const call = graph.callMethod("relu", [graph.findNodes({ op: "placeholder" })[0] ?? null]);
    output?.prepend(call);
    const error = await refusal(() => {
      program.validate();
    });
    expect(error).toBeInstanceOf(GraphError);
    expect([error.kind, error.reason]).toEqual(["SpecViolation", "call_module is not valid: got a class 'relu' "]);
  });

  it("refuses assignments of its parts, and calls", async () => {
    const program = await open("digits_cnn");
    for (const [name, told] of [
      ["graph", "graph"],
      ["graphModule", "graph_module"],
      ["graphSignature", "graph_signature"],
      ["stateDict", "state_dict"],
      ["callSpec", "call_spec"],
      ["tensorConstants", "tensor_constants"],
    ] as const) {
      const error = await refusal(() => Reflect.set(program, name, undefined));
      expect(error.reason).toBe(`Unable to set ExportedProgram's ${told} attribute.`);
    }
    const advice = "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.";
    expect((await refusal(() => program.forward())).reason).toBe(advice);
    using module = program.module({ checkGuards: false });
    expect((await refusal(() => module.train())).reason).toBe("Calling train() is not supported yet.");
    expect(await refusal(() => module.eval())).toBeInstanceOf(NotImplementedError);
  });

  it("takes example inputs that fit, and no others", async () => {
    const program = await open("digits_cnn");
    const x = tensor(new Float32Array(64), { shape: [1, 1, 8, 8] });
    program.exampleInputs = [[x], {}];
    expect(program.exampleInputs[0]).toEqual([x]);
    const shape = await refusal(() => (program.exampleInputs = [x] as never));
    expect(shape.reason).toMatch(/^Example inputs should be a tuple containing example arguments/);
    const fits = await refusal(() => (program.exampleInputs = [[x, x], {}]));
    expect(fits.reason).toMatch(/^Trying to flatten user inputs with exported input tree spec/);
    program.exampleInputs = null;
    expect(program.exampleInputs).toBeNull();
  });

  it("says what PyTorch's properties say", async () => {
    const program = await open("conv_bn_relu_train__core");
    const { graphSignature } = program;
    expect([...program.parameters()].length).toBe(graphSignature.parameters.length);
    expect([...program.namedBuffers()].map(([name]) => name)).toEqual(graphSignature.buffers);
    expect(graphSignature.backwardSignature).toBeNull();
    expect(graphSignature.assertionDepToken).toBeNull();
    expect(program.callSpec.inSpec?.children.length).toBe(2);
    expect((await open("nested_io")).graphSignature.userInputs).toContain(2);
  });
});

describe("a signature", () => {
  it("follows nodes that are replaced", async () => {
    const { graph, graphModule, graphSignature } = await open("digits_cnn");
    const output = graph.outputNode();
    const last = graph.find(graphSignature.userOutputs[0] as string);
    const signature = graphSignature.clone();
    const relu = graph.callFunction("torch.ops.aten.relu.default", [last ?? null]);
    output?.prepend(relu);
    {
      using _hook = graphModule.graphHooks.onReplace(signature.getReplaceHook());
      output?.replaceInputWith(last as never, relu);
    }
    expect(signature.userOutputs).toEqual([relu.name]);
    expect(graphSignature.userOutputs).toEqual([last?.name]);
    expect(signature).toBeInstanceOf(GraphSignature);
  });
});

/** Gives the last input another name. */
function rename(graphModule: GraphModule) {
  const [input] = graphModule.graph.findNodes({ op: "placeholder" }).slice(-1);
  if (input !== undefined) input.name = "renamed";
  return { graphModule, modified: true };
}

describe("a pass over a program", () => {
  it("gives another program, which is validated", async () => {
    const program = await open("digits_cnn");
    const before = String(program);
    const renamed = program.transform(rename);
    expect(renamed.graphSignature.userInputs).toEqual(["renamed"]);
    expect(String(program)).toBe(before);
    expect(program.transform(new CSEPass())).toBe(program);
    const error = await refusal(() =>
      program.transform((graphModule: GraphModule) => {
        graphModule.graph.placeholder("more");
        return { graphModule, modified: true };
      }),
    );
    expect(error).toBeInstanceOf(FxError);
  });

  it("merges reads of one item", async () => {
    const program = await open("cond_simple");
    const { graph } = program;
    const read = graph.find("getitem");
    const again = graph.nodeCopy(read as never, (node) => node);
    graph.outputNode()?.prepend(again);
    graph.outputNode()?.replaceInputWith(read as never, again);
    const signature = program.graphSignature.clone();
    signature.replaceAllUses("getitem", again.name);
    const updated = program.update(program.graphModule, signature);
    expect(updated.graphSignature.userOutputs[0]).toBe("getitem");
    expect(mergeGetitems(updated.graphModule).modified).toBe(false);
  });
});
