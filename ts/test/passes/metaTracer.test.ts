/**
 * Traces that know the shapes of their values, and what PyTorch 2.13 records: `tests/oracle/gen_experimental.py` has the same programs.
 */
import { beforeAll, expect, test } from "vitest";
import {
  Graph,
  init,
  MetaProxy,
  MetaTracer,
  Module,
  nn,
  type Node,
  Proxy,
  symbolicTrace,
  type Tensor,
  type TensorMeta,
  torch,
  type Traceable,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";

beforeAll(() => init());

const recorded = experimental("traces_that_know_shapes");

test("as PyTorch records: traces_that_know_shapes", () => {
  const said: string[] = [];
  const traced = (fn: Traceable, metaArgs: Readonly<Record<string, Tensor>>) => {
    const gm = symbolicTrace(fn, { tracer: new MetaTracer({ metaArgs }) });
    said.push(String(gm.graph));
    return gm;
  };
  traced((x: Tensor) => (x.dim() > 2 ? torch.flatten(x, 1) : x), { x: torch.ones(2, 3, 4) });
  traced((x: Tensor) => torch.mul(x.view(x.shape[0] as number, -1), x.size(1)), { x: torch.ones(2, 3, 4) });
  traced((x: Tensor, y: Tensor) => (x.shape[0] === y.shape[0] ? torch.cat([x, y], 1).relu().reshape(-1) : x), {
    x: torch.ones(2, 3),
    y: torch.ones(2, 5),
  });
  class M extends Module {
    linear = new nn.Linear(3, 5);
    override forward(x: Tensor): Tensor {
      const y = this.linear.forward(x);
      return y.shape.at(-1) === 5 ? new nn.ReLU().forward(y) : y;
    }
  }
  const root = new M();
  const gm = traced(root, { x: torch.ones(2, 3) });
  said.push(`[${[...gm.namedChildren()].map(([name]) => name).join(", ")}]`);
  // Python's operator is a function of its own.
  expect(said.map((it) => it.replace("target=torch.mul", "target=operator.mul"))).toEqual(recorded);
  expect([...root.namedChildren()].map(([name]) => name)).toEqual(["linear"]);
  const relu = gm.graph.nodes.find((it) => it.name === "relu_0") as Node;
  expect((relu.meta.get("val") as TensorMeta).sizes).toEqual([2, 5]);
});

test("what is not known is told, and traced without it", () => {
  const told: string[] = [];
  class Telling extends MetaTracer {
    protected override warn(warning: Error): void {
      told.push(warning.message);
    }
  }
  const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.add(x, y).relu(), {
    tracer: new Telling({ metaArgs: { x: torch.ones(2) } }),
  });
  expect(gm.graph.nodes.map((it) => it.target)).toEqual(["x", "y", "torch.add", "relu", "output"]);
  expect(told[0]).toContain("could not compute metadata for call_function target torch.add: nothing is known of %y");
  expect(() => new MetaTracer({ metaArgs: { x: [2, 3] as never } })).toThrow("tensors by the names of inputs");
});

const traced = (fn: Traceable): unknown =>
  symbolicTrace(fn, { tracer: new MetaTracer({ metaArgs: { x: torch.ones(2) } }) });

const branch = (x: Tensor, y: Tensor): Tensor => (y.shape[0] === 2 ? x.sin() : x.cos());

const onDevice = (x: Tensor): Tensor => torch.zeros([3], { device: x.device }).add(x.size(0));

test("what is not known decides nothing", () => {
  expect(() => traced(branch)).toThrow("`shape` of Proxy(y) is not known");
  expect(() => traced((x: Tensor, y: Tensor) => (y.dim() === 2 ? x.sin() : x))).toThrow("`dim` of Proxy(y)");
});

test("a device that is read is known", () => {
  const gm = symbolicTrace(onDevice, { tracer: new MetaTracer({ metaArgs: { x: torch.ones(2) } }) });
  const add = gm.graph.nodes.find((it) => it.name === "add") as Node;
  expect((add.meta.get("val") as TensorMeta).sizes).toEqual([3]);
  expect(gm.graph.nodes.map((it) => it.target)).toContain("builtins.getattr");
});

test("a MetaProxy notes what its uses give", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  x.meta.set(
    "val",
    symbolicTrace((it: Tensor) => it, { tracer: new MetaTracer({ metaArgs: { it: torch.ones(2, 3) } }) })
      .graph.nodes.at(0)
      ?.meta.get("val"),
  );
  const proxy = new MetaProxy(x);
  const product = torch.matmul(proxy, torch.transpose(proxy, 0, 1)) as Proxy;
  expect(product instanceof MetaProxy && !(new Proxy(x) instanceof MetaProxy)).toBe(true);
  expect((product.node.meta.get("val") as TensorMeta).sizes).toEqual([2, 2]);
});

test("what nobody knows is installed", () => {
  const tracer = new MetaTracer();
  const gm = symbolicTrace(
    (x: Tensor) => {
      tracer.installTensorMeta(x, torch.ones(4, 3));
      return x.size(0) === 4 ? x.relu().reshape([x.shape[1] as number, -1]) : x;
    },
    { tracer },
  );
  expect(gm.graph.nodes.map(({ target }) => target)).toEqual(["x", "relu", "reshape", "output"]);
  const vals = gm.graph.nodes.map(({ meta }) => (meta.get("val") as TensorMeta | undefined)?.sizes);
  expect(vals.slice(0, 3)).toEqual([
    [4, 3],
    [4, 3],
    [3, 4],
  ]);
  expect(() => new MetaTracer().installTensorMeta(torch.ones(2), torch.ones(2))).toThrow("a value of this trace");
});
