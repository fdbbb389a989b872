import { beforeAll, expect, test } from "vitest";
import {
  getAccOpsName,
  getNodeTarget,
  getSizeOfAllNodes,
  getSizeOfNode,
  getTensorMeta,
  Graph,
  GraphModule,
  init,
  type Node,
  nn,
  replaceTargetNodesWith,
  symbolicTrace,
  tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

class Model extends nn.Module {
  readonly linear = new nn.Linear(3, 2);
  override forward(x: unknown) {
    return torch.relu(this.linear.call(x) as never);
  }
}

const node = (gm: GraphModule, name: string): Node => [...gm.graph.nodes].find((it) => it.name === name) as Node;

test("sizes are those of results and parameters", () => {
  const gm = symbolicTrace(new Model());
  expect(() => getSizeOfAllNodes(gm)).toThrow("Node x has no tensor metadata associated with it!");
  expect(() => getTensorMeta(node(gm, "x"))).toThrow("Node x has no tensor metadata associated with it!");
  const sizes = getSizeOfAllNodes(gm, [tensor([[1, 2, 3]], { dtype: "float32" })]);
  expect(Object.fromEntries(Array.from(sizes, ([it, size]) => [it.name, size]))).toEqual({
    x: { outputSize: 12, totalSize: 12 },
    linear: { outputSize: 8, totalSize: 40 },
    relu: { outputSize: 8, totalSize: 8 },
  });
  node(gm, "x").meta.clear();
  expect(getSizeOfNode(gm, node(gm, "linear"))).toEqual({ outputSize: 8, totalSize: 40 });
  expect(getTensorMeta(node(gm, "linear")).dtype).toBe("float32");
});

test("nodes get other targets, and keep their names and notes", () => {
  const gm = symbolicTrace(new Model());
  node(gm, "relu").meta.set("mine", 1);
  replaceTargetNodesWith(gm, "call_function", torch.relu as never, "call_method", "neg");
  expect(node(gm, "relu").op).toBe("call_method");
  expect(node(gm, "relu").target).toBe("neg");
  expect(node(gm, "relu").meta.get("mine")).toBe(1);
  gm.graph.lint();
});

test("names of acc_ops lose their path", () => {
  expect(getAccOpsName("glow.fb.fx.acc_ops.linear")).toBe("acc_ops.linear");
  expect(getAccOpsName("torch._ops.aten.relu")).toBe("torch.ops.aten.relu");
  expect(getAccOpsName("relu")).toBe("relu");
  const graph = new Graph();
  const relu = graph.callFunction("fx2trt.acc_ops.relu", [graph.placeholder("x")]);
  graph.output(relu);
  expect(getNodeTarget(new GraphModule({}, graph).namedModules(), relu)).toBe("acc_ops.relu");
});
