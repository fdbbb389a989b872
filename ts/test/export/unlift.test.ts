/** Programs as graph modules that hold their state, edited, run and made programs of again. */
import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  constantFold,
  Dim,
  exportProgram,
  type ExportedProgram,
  fuseBatchNorm,
  type GraphModule,
  init,
  load,
  nn,
  type Node,
  replacePattern,
  save,
  tensor,
  Tensor,
  torch,
  type TensorMeta,
  type Tuple,
  tuple,
  unflatten,
} from "../../src/index.ts";
import { functionNamed } from "../../src/functions/table.ts";
import { thrown } from "../thrown.ts";
import { fixture, largestDifference, open } from "./fixtures.ts";

beforeAll(async () => {
  await init();
  const { library } = torch;
  library.customOp("fxtest::scale_add", (x: Tensor, y: Tensor, alpha: number) => x.mul(alpha).add(y), {
    schema: "(Tensor x, Tensor y, float alpha) -> Tensor",
  });
  library.customOp("fxtest::accum_", (acc: Tensor, x: Tensor) => void acc.add_(x), {
    schema: "(Tensor(a!) acc, Tensor x) -> ()",
  });
});

/** The recorded programs. */
const programNames = readdirSync(fixture("")).filter((it) => !/^_|^multi_model$/.test(it));

/** A parameter, a buffer that changes, one that is not saved, and a constant; nested inputs and results. */
class Net extends nn.Module {
  l = new nn.Linear(4, 3);
  k = tensor([1, 2, 3], { dtype: "float32" });
  declare count: Tensor;
  declare np: Tensor;

  constructor() {
    super();
    this.registerBuffer("count", torch.zeros(1));
    this.registerBuffer("np", torch.ones(3), { persistent: false });
  }

  override forward(x: Tensor, d: { readonly z: Tensor }): unknown {
    this.count.add_(1);
    const y = this.l.forward(x).mul(this.np).add(this.k);
    return { a: y.relu(), b: [d.z.add(1)] };
  }
}

const inputs = (rows = 2): [Tensor, { z: Tensor }] => [torch.randn([rows, 4]), { z: torch.ones(2) }];

const netProgram = (): ExportedProgram =>
  exportProgram(new Net(), inputs(), {}, { dynamicShapes: { x: { 0: Dim("b", { max: 64 }) }, d: { z: null } } });

const leaves = (value: unknown): Tensor[] => {
  const { a, b } = value as { a: Tensor; b: [Tensor] };
  return [a, ...b];
};

const same = (a: readonly Tensor[], b: readonly Tensor[]): boolean =>
  a.length === b.length && a.every((it, at) => torch.equal(it, b[at] as Tensor));

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, it: unknown) => (it instanceof Tensor ? [it.dtype, it.shape, String(it.detach())] : it));

describe("unlift", () => {
  test("what update is given is a graph module and a signature", () => {
    const program = netProgram();
    expect(thrown(() => program.update(program.graph as never, program.graphSignature)).reason).toBe(
      "update takes a GraphModule",
    );
    expect(thrown(() => program.update(program.graphModule, {} as never)).reason).toContain("GraphSignature");
  });

  test("gives PyTorch's module: get_attr nodes for what is lifted, and the tensors of the program", () => {
    const program = netProgram();
    const gm = program.unlift();
    // As PyTorch 2.13 prints it, without the call of its guards.
    expect(`${gm.graph}`).toBe(
      [
        "graph():",
        "    %l_weight : [num_users=1] = get_attr[target=l.weight]",
        "    %l_bias : [num_users=1] = get_attr[target=l.bias]",
        "    %count : [num_users=1] = get_attr[target=count]",
        "    %np : [num_users=1] = get_attr[target=np]",
        "    %k : [num_users=1] = get_attr[target=k]",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %d_z : [num_users=1] = placeholder[target=d_z]",
        "    %add_ : [num_users=0] = call_function[target=torch.ops.aten.add_.Tensor](args = (%count, 1), kwargs = {})",
        "    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %l_weight, %l_bias), kwargs = {})",
        "    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%linear, %np), kwargs = {})",
        "    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %k), kwargs = {})",
        "    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {})",
        "    %add_1 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%d_z, 1), kwargs = {})",
        "    return (relu, add_1)",
      ].join("\n"),
    );
    expect([...gm.namedParameters().keys()]).toEqual(["l.weight", "l.bias"]);
    expect([...gm.stateDict().keys()]).toEqual(["count", "l.weight", "l.bias"]);
    expect(gm.namedBuffers().get("count")).toBe(program.stateDict.get("count"));
    expect([...gm.graph.nodes].every((it) => it.op === "output" || it.meta.has("val"))).toBe(true);
    gm.graph.lint();
    // The program is as it was.
    expect(program.graph.findNodes({ op: "get_attr" })).toEqual([]);
    program.validate();
  });

  test("runs as the program does, on the structure that was exported, and writes to the state of the program", () => {
    const program = netProgram();
    const gm = program.unlift();
    for (const rows of [2, 5]) {
      const given = inputs(rows);
      using run = program.module();
      expect(same(leaves(gm.forward(...given)), leaves(run(...given)))).toBe(true);
    }
    expect(program.stateDict.get("count")?.toArray()).toEqual([2]);
    expect(
      program
        .clone()
        .unlift()
        .forward(...inputs()),
    ).toBeDefined();
    expect(program.stateDict.get("count")?.toArray()).toEqual([2]);
  });

  test("what the program does not take is refused", () => {
    const gm = netProgram().unlift();
    const [x, d] = inputs();
    for (const wrong of [
      [x],
      [x, d, d],
      [x, x],
      [torch.randn([65, 4]), d],
      [torch.randn([2, 5]), d],
      [x.double(), d],
    ]) {
      expect(thrown(() => gm.forward(...wrong)).code).toMatch(/^FX09|^FX07|^FX06/);
    }
  });

  /** What no module can hold, or has operators that are registered elsewhere. */
  const REFUSED: Readonly<Record<string, string>> = {
    subclass_weight: "`0.weight` is an object that only Python can make again",
  };

  test.each(programNames)(
    "%s runs as the program does, before and after it is made a program of again",
    async (name) => {
      const program = await open(name);
      if (name in REFUSED) return expect(thrown(() => program.unlift()).reason).toBe(REFUSED[name]);
      const again = program.relift(program.unlift());
      if (program.graphSignature.inputTokens.length > 0) {
        // A module runs from top to bottom, as PyTorch's does, and needs no effect tokens.
        expect([...again.graphSignature.inputTokens, ...again.graphSignature.outputTokens]).toEqual([]);
        expect(`${again.graph}`).not.toContain("with_effects");
      } else {
        expect(String(again.graphSignature)).toBe(String(program.graphSignature));
        expect(`${again.graph}`).toBe(`${program.graph}`);
      }
      expect([...again.stateDict.keys()].toSorted()).toEqual([...program.stateDict.keys()].toSorted());
      // Each example is opened anew, since calls may write to their inputs.
      const runs = async (run: (...args: unknown[]) => unknown): Promise<string[]> => {
        const res: string[] = [];
        for (const _ of [0, 1]) {
          const { exampleInputs } = await open(name);
          if (exampleInputs === null) return [];
          const [args, kwargs] = exampleInputs;
          const given = Object.keys(kwargs).length > 0 ? [...args, kwargs] : [...args];
          torch.manualSeed(5);
          res.push(textOf([run(...given), given]));
        }
        return res;
      };
      // A graph module runs node by node, to the bit as strict plans do.
      using module = program.module({ precision: "strict" });
      const expected = await runs((...args) => module(...args));
      using other = again.module({ precision: "strict" });
      expect(await runs((...args) => other(...args))).toEqual(expected);
      const gm = program.clone().unlift();
      expect(await runs((...args) => gm.forward(...args))).toEqual(expected);
    },
  );
});

describe("relift", () => {
  test.each(["digits_cnn", "digits_cnn__core"])(
    "%s has its batch norms folded, and is saved, opened and run",
    async (name) => {
      const program = await open(name);
      expect(fuseBatchNorm(program.graphModule).modified).toBe(false);
      const fused = program.withLiftedState(fuseBatchNorm, (graphModule) => ({
        graphModule,
        modified: constantFold(graphModule),
      }));
      const text = `${fused.graph}`;
      expect(text).not.toContain("batch_norm");
      expect(text).toContain("conv");
      expect(fused.graph.findNodes({ op: "get_attr" })).toEqual([]);
      expect(fused.graph.nodes.toArray().every((it) => it.op === "output" || it.meta.has("val"))).toBe(true);
      const again = await load(save(fused));
      const [x] = (program.exampleInputs?.[0] ?? []) as [Tensor];
      const expected = program.module()(x) as Tensor;
      expect(largestDifference(again.module()(x) as Tensor, expected)).toBeLessThan(1e-4);
      expect(largestDifference(fused.module()(x) as Tensor, expected)).toBeLessThan(1e-4);
      expect(fused.withLiftedState(fuseBatchNorm)).toBe(fused);
    },
  );

  test("what the module does not hold any more is gone, and what it holds now is lifted by its kind", () => {
    const program = netProgram();
    const gm = program.unlift();
    const [mul] = gm.graph.findNodes({ op: "call_function", target: "torch.ops.aten.mul.Tensor" });
    const [linear] = gm.graph.findNodes({ op: "call_function", target: "torch.ops.aten.linear.default" });
    gm.addSubmodule("extra", new nn.Module());
    gm.getSubmodule("extra").registerParameter("scale", new nn.Parameter(tensor([2, 2, 2], { dtype: "float32" })));
    gm.getSubmodule("extra").registerBuffer("shift", tensor([1, 1, 1], { dtype: "float32" }));
    gm.attributes.set("fixed", { kind: "constant", tensor: tensor([5, 5, 5], { dtype: "float32" }) });
    gm.graph.insertingBefore(mul, () => {
      const [scale, shift, fixed] = ["extra.scale", "extra.shift", "fixed"].map((it) => gm.graph.getAttr(it));
      let value = gm.graph.callFunction("torch.ops.aten.mul.Tensor", [linear as never, scale as never]);
      value = gm.graph.callFunction("torch.ops.aten.add.Tensor", [value, shift as never]);
      value = gm.graph.callFunction("torch.ops.aten.add.Tensor", [value, fixed as never]);
      mul?.replaceAllUsesWith(value);
    });
    gm.graph.eliminateDeadCode();
    gm.attributes.delete("np");
    const edited = program.relift(gm);
    expect(String(edited.graphSignature).trim().split("\n").slice(1, 10)).toEqual([
      "p_l_weight: PARAMETER target='l.weight'",
      "p_l_bias: PARAMETER target='l.bias'",
      "p_extra_scale: PARAMETER target='extra.scale'",
      "b_count: BUFFER target='count' persistent=True",
      "b_extra_shift: BUFFER target='extra.shift' persistent=True",
      "c_k: CONSTANT_TENSOR target='k'",
      "c_fixed: CONSTANT_TENSOR target='fixed'",
      "x: USER_INPUT",
      "d_z: USER_INPUT",
    ]);
    expect([...edited.stateDict.keys()].toSorted()).toEqual([
      "count",
      "extra.scale",
      "extra.shift",
      "l.bias",
      "l.weight",
    ]);
    expect([...edited.constants.keys()].toSorted()).toEqual(["fixed", "k"]);
    const given = inputs(7);
    using run = edited.module();
    expect(same(leaves(run(...given)), leaves(gm.forward(...given)))).toBe(true);
    // The program itself is as it was.
    expect(program.constants.has("np")).toBe(true);
    program.validate();
  });

  test("a module with other inputs or results, or without a tensor that it reads, is refused", () => {
    const program = netProgram();
    const withInput = program.unlift();
    withInput.graph.insertingBefore(withInput.graph.first, () => withInput.graph.placeholder("more"));
    expect(thrown(() => program.relift(withInput)).reason).toBe(
      "Number of inputs changed after transformation: there are 3, and there were 2",
    );
    const withResult = program.unlift();
    const output = withResult.graph.outputNode();
    if (output !== undefined) output.args = [tuple(...(output.args[0] as Tuple), null)];
    expect(thrown(() => program.relift(withResult)).reason).toBe(
      "Number of outputs changed after transformation: there are 3, and there were 2",
    );
    const without = program.unlift();
    without.attributes.delete("np");
    expect(thrown(() => program.relift(without)).reason).toBe("there is no tensor `np`");
    expect(thrown(() => program.relift({} as never)).code).toBe("FX0304");
  });
});

test("an unflattened module whose input has a name that FX would change checks its inputs", async () => {
  const program = await open("digits_cnn");
  const [x] = (program.exampleInputs?.[0] ?? []) as [Tensor];
  const modules = unflatten(program);
  expect(largestDifference(modules.forward(x) as Tensor, program.module()(x) as Tensor)).toBeLessThan(1e-5);
});

const op = (name: string) => functionNamed(`torch.ops.aten.${name}.default`) as (...args: unknown[]) => Tensor;

/** `linear` becomes `t` and `addmm`, and the relu behind it another node. */
const replaceLinear = (gm: GraphModule): number =>
  replacePattern(
    gm,
    (x: Tensor, w: Tensor, b: Tensor) => op("linear")(x, w, b),
    (x: Tensor, w: Tensor, b: Tensor) => op("addmm")(b, x, op("t")(w)),
  ).length;

describe("what new nodes give is noted", () => {
  test("after replacePattern in a program with dynamic sizes, which is saved", async () => {
    const program = netProgram();
    expect(replaceLinear(program.graphModule)).toBe(1);
    const [addmm] = program.graph.findNodes({ op: "call_function", target: "torch.ops.aten.addmm.default" });
    const val = addmm?.meta.get("val") as TensorMeta;
    const [x] = program.graph.findNodes({ op: "placeholder", target: "x" });
    expect([val.dtype, String(val.sizes[0]), val.sizes[1]]).toEqual([
      "float32",
      String(((x as Node).meta.get("val") as TensorMeta).sizes[0]),
      3,
    ]);
    program.validate();
    const given = inputs(7);
    const again = await load(save(program));
    expect(same(leaves(again.module()(...given)), leaves(program.unlift().forward(...given)))).toBe(true);
    expect(`${again.graph}`).toBe(`${program.graph}`);
  });

  test("where nodes are added by hand, when the program is saved", async () => {
    const program = netProgram();
    const { graph } = program;
    const [relu] = graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
    const nonzero = graph.insertingAfter(relu, () =>
      graph.callFunction("torch.ops.aten.nonzero.default", [relu as never]),
    );
    const twice = graph.insertingAfter(relu, () => graph.callFunction("torch.ops.aten.mul.Tensor", [relu as never, 2]));
    relu?.replaceAllUsesWith(twice, { filter: (user) => user !== twice && user !== nonzero });
    program.graphSignature.replaceAllUses("relu", twice.name);
    const saved = await load(save(program));
    expect(`${saved.graph}`).toContain("nonzero");
    expect(String((nonzero.meta.get("val") as TensorMeta).sizes[0])).toContain("u0");
  });

  test("and what a node refuses is told where the program is saved", () => {
    const program = netProgram();
    const { graph } = program;
    const [linear] = graph.findNodes({ op: "call_function", target: "torch.ops.aten.linear.default" });
    graph.insertingAfter(linear, () =>
      graph.callFunction("torch.ops.aten.mm.default", [linear as never, linear as never]),
    );
    const problem = thrown(() => save(program));
    expect(problem.code).toBe("FX0401");
    expect(problem.notes.join()).toMatch(/mat1 and mat2|shapes|sizes/);
  });
});
