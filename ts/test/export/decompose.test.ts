import { describe, expect, it } from "vitest";
import { NotImplementedError } from "../../src/base/errors.ts";
import { defaultDecompositions } from "../../src/export/exportedProgram.ts";
import { load } from "../../src/export/load.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { largestDifference, open, refusal } from "./fixtures.ts";

describe("runDecompositions", () => {
  it("gives the same numbers by core operators", async () => {
    const program = await open("digits_cnn");
    const core = program.runDecompositions();
    const table = defaultDecompositions();
    const targets = [...core.graph.nodes].map((node) => node.target);
    expect(targets.filter((target) => table.has(String(target)))).toEqual([]);
    expect(targets).toContain("torch.ops.aten.convolution.default");
    expect(core.verifiers).toEqual(["ATEN"]);
    const image = tensor(
      new Float32Array(64).map((_, i) => i / 64),
      { shape: [1, 1, 8, 8] },
    );
    const [want, got] = [program.module()(image), core.module()(image)] as [Tensor, Tensor];
    expect(largestDifference(got, want)).toBeLessThan(1e-5);
  });

  it("keeps what is taken out of the table", async () => {
    const program = await open("digits_cnn");
    const table = defaultDecompositions();
    expect(table.delete("torch.ops.aten.linear.default")).toBe(true);
    expect(String(program.runDecompositions(table).graph)).toContain("torch.ops.aten.linear.default");
    const problem = await refusal(() => program.runDecompositions(new Set(["aten.nothing.default"])));
    expect(problem).toBeInstanceOf(NotImplementedError);
  });

  it("returns what the program writes to its state", async () => {
    const program = await open("conv_bn_relu_train");
    const core = program.runDecompositions();
    expect([...core.graphSignature.buffersToMutate.values()]).toContain("1.num_batches_tracked");
    expect(String(core.graph)).not.toContain("add_.Tensor");
    const saved = await load(core.toFxg());
    expect(String(saved.graph)).toBe(String(core.graph));
  });
});
