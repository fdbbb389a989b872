/** Programs that are exported again: `export(ep.module(), ...)`. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import {
  cond,
  Dim,
  exportProgram,
  type ExportedProgram,
  type GraphModule,
  init,
  map,
  nn,
  operator,
  scan,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
  unflatten,
  whileLoop,
} from "../../src/index.ts";
import { open } from "./fixtures.ts";

beforeAll(() => init());

/** What PyTorch made of the recorded programs, by `tests/oracle/gen_retraced.py`. */
const RECORDED = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../../tests/fixtures/retraced/graphs.json", import.meta.url)), "utf8"),
) as Record<string, { readonly graph?: string; readonly signature?: string }>;

/** Where the text of the graph is not PyTorch's, and how it differs. */
const DIFFERENT: Readonly<Record<string, string>> = {
  cond_shape_nested: "a condition on sizes that are known takes the branch, and is no cond of True",
  cond_simple: "operands are a tuple, as in the first export, where a file has a list",
  while_loop_hop: "operands are a tuple, as in the first export, where a file has a list",
  no_grad_hop: "an empty region stands before the one that is called",
  unbacked_item: "assertions keep the names that they had, and a number is computed where it is needed first",
};

const calls = (text: string): string[] => [...new Set(text.match(/higher_order\.\w+/g))];

describe("recorded programs are what PyTorch makes of them", () => {
  const names = Object.keys(RECORDED).filter((name) => RECORDED[name]?.graph !== undefined);
  test.each(names)("%s", async (name) => {
    const { graph = "", signature } = RECORDED[name] ?? {};
    const program = await open(name);
    const [args, kwargs] = program.exampleInputs ?? [[], {}];
    // The export compares the new program with the module.
    const again = exportProgram(program.module(), args, kwargs);
    expect(String(again.graphSignature)).toBe(signature);
    if (name in DIFFERENT) {
      if (name !== "cond_shape_nested") expect(calls(`${again.graph}`)).toEqual(calls(graph));
      return expect(`${again.graph}`).not.toBe(graph);
    }
    expect(`${again.graph}`).toBe(graph);
  });
});

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
    const rows = x.size(0);
    return { a: y.view(operator.mul(rows, 3) as number), b: [d.z.add(1)] };
  }
}

const inputs = (rows = 2): [Tensor, { z: Tensor }] => [torch.randn([rows, 4]), { z: torch.ones(2) }];
const dynamicShapes = { x: { 0: Dim("b") }, d: { z: null } };
const netProgram = (): ExportedProgram => exportProgram(new Net(), inputs(), {}, { dynamicShapes });

describe("a program with dynamic sizes", () => {
  test("is the same program again, with the lines and the modules that its nodes come from", () => {
    const program = netProgram();
    const again = exportProgram(program.module(), inputs(), {}, { dynamicShapes });
    expect(String(again)).toBe(String(program));
    expect(String(exportProgram(program.unlift(), inputs(), {}, { dynamicShapes }))).toBe(String(program));
    const modules = unflatten(again);
    expect(`${(modules.graphModule.getSubmodule("l") as GraphModule).graph}`).toContain("linear");
    using run = again.module();
    const { a } = run(...inputs(5)) as { a: Tensor };
    expect(a.shape).toEqual([15]);
  });

  test("holds what calls of the module have written", () => {
    const program = netProgram();
    using run = program.module();
    run(...inputs());
    const again = exportProgram(run, inputs(), {}, { dynamicShapes });
    expect(again.stateDict.get("count")?.toArray()).toEqual([1]);
    expect(program.stateDict.get("count")?.toArray()).toEqual([0]);
  });

  test("may have other sizes: none that are dynamic, as in PyTorch", () => {
    const again = exportProgram(netProgram().module(), inputs());
    expect(`${again.graph}`).not.toContain("sym_size");
    expect(`${again.graph}`).toContain("view.default](args = (%add, [6])");
  });

  test("of which the graph module alone is exported takes what was lifted as inputs", () => {
    const program = netProgram();
    const flat = [
      ...program.parameters(),
      torch.zeros(1),
      torch.ones(3),
      torch.ones(3),
      torch.randn([2, 4]),
      torch.ones(2),
    ];
    const shapes = flat.map((_, at) => (at === 5 ? { 0: Dim("b") } : null));
    const again = exportProgram(program.graphModule, flat, {}, { dynamicShapes: shapes });
    expect(`${again.graph}`).toBe(`${program.graph}`);
    expect(again.graphSignature.userInputs).toEqual(["p_l_weight", "p_l_bias", "b_count", "b_np", "c_k", "x", "d_z"]);
  });

  test("in terms of core operators becomes one that writes in place", () => {
    const again = exportProgram(netProgram().runDecompositions().module(), inputs(), {}, { dynamicShapes });
    expect(`${again.graph}`).toContain("copy_.default](args = (%b_count, %add)");
    expect([...again.graphSignature.buffersToMutate]).toEqual([]);
  });
});

test("a graph that was traced is exported with size arithmetic", () => {
  class Flat extends nn.Module {
    override forward(x: Tensor): Tensor {
      return x.view(operator.mul(operator.floordiv(x.shape[0] as number, 2), 8) as number);
    }
  }
  const gm = symbolicTrace(new Flat());
  const program = exportProgram(gm, [torch.randn([6, 4])], {}, { dynamicShapes: { x: { 0: Dim("half").mul(2) } } });
  expect((program.module()(torch.randn([10, 4])) as Tensor).shape).toEqual([40]);
});

const given = (sign: number, n: number): Tensor[] => [torch.ones([2, 3]).mul(sign), torch.tensor(n)];

describe("control flow of a graph is recorded, and no branch is taken", () => {
  class Flow extends nn.Module {
    w = new nn.Linear(3, 3);

    override forward(x: Tensor, n: Tensor): unknown {
      const y = cond(
        x.sum().gt(0),
        (it: Tensor) => this.w.forward(it),
        (it: Tensor) => it.neg(),
        [x],
      );
      const [, z] = whileLoop(
        (at: Tensor) => at.lt(n),
        (at: Tensor, value: Tensor) => [at.add(1), value.mul(2).add(x)],
        [torch.zeros([], { dtype: "int64" }), y],
      );
      const rows = map((row: Tensor, bias: Tensor) => row.add(bias), z, x);
      const [total, sums] = scan(
        (sum: Tensor, row: Tensor) => [sum.add(row), sum.mul(row)] as const,
        torch.zeros(3),
        z,
      );
      return [y, z, rows, total, sums];
    }
  }

  test("cond, while_loop, map and scan, in programs and in graphs that were traced", () => {
    const model = new Flow();
    const program = exportProgram(model, given(1, 2));
    for (const exported of [program.module(), program.unlift(), program.runDecompositions().module()]) {
      const again = exportProgram(exported, given(1, 2));
      for (const name of ["cond", "while_loop", "map_impl", "scan"])
        expect(`${again.graph}`).toContain(`higher_order.${name}]`);
      using run = again.module();
      for (const [sign, n] of [
        [1, 2],
        [-1, 2],
        [-1, 5],
        [1, 0],
      ] as const) {
        const [expected, found] = [model.forward(...(given(sign, n) as [Tensor, Tensor])), run(...given(sign, n))];
        (expected as Tensor[]).forEach((it, at) => {
          expect(torch.allclose(it, (found as Tensor[])[at] as Tensor)).toBe(true);
        });
      }
    }
  });
});
