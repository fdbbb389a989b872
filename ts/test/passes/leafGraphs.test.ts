import { beforeAll, describe, expect, it } from "vitest";
import {
  FakeTensorProp,
  init,
  Module,
  nn,
  ShapeProp,
  SymExpr,
  symbolicTrace,
  type Tensor,
  type TensorMetadata,
  TensorMeta,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

class Net extends Module {
  readonly features = new nn.Sequential(
    new nn.Conv2d(3, 8, 3, { padding: 1 }),
    new nn.BatchNorm2d(8),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Dropout(),
  );
  readonly norm = new nn.LayerNorm([8, 4, 4]);
  readonly head = new nn.Linear(8 * 4 * 4, 10);

  override forward(x: Tensor): Tensor {
    return torch.softmax(this.head.forward(torch.flatten(this.norm.forward(this.features.forward(x)), 1)), 1);
  }
}

const s0 = new SymExpr("Symbol('s0', positive=True, integer=True)");

const sizesOf = (val: unknown) =>
  (val as TensorMeta).sizes.map((size) => (size instanceof SymExpr ? size.srepr : Number(size)));

/** What both ways to find out shapes note, by node. */
function noted(gm: ReturnType<typeof symbolicTrace>) {
  return Array.from(gm.graph.nodes, ({ name, meta }) => {
    const { shape, stride, dtype, memoryFormat } = meta.get("tensor_meta") as TensorMetadata;
    return { name, shape, stride, dtype, memoryFormat };
  });
}

describe("shapes through modules that are leaves", () => {
  it("are those of a run", () => {
    const [run, fake] = [symbolicTrace(new Net()), symbolicTrace(new Net())];
    const x = torch.zeros([2, 3, 8, 8]);
    new ShapeProp(run).propagate(x);
    const before = [...fake.graph.nodes];
    const output = new ShapeProp(fake, { fakeMode: true }).propagate(x);
    expect(sizesOf(output)).toEqual([2, 10]);
    expect(noted(fake)).toEqual(noted(run));
    expect([...fake.graph.nodes].every((node, at) => node === before[at])).toBe(true);
    expect(fake.graph.owningModule).toBe(fake);
  });

  it("may be symbolic", () => {
    const gm = symbolicTrace(new Net());
    const known = new TensorMeta({ ...tensorMeta(torch.zeros([2, 3, 8, 8])), sizes: [s0, 3, 8, 8] });
    expect(sizesOf(new FakeTensorProp(gm).propagate(known))).toEqual([s0.srepr, 10]);
  });

  it("leave the modules as they are", () => {
    const net = new Net();
    const gm = symbolicTrace(net);
    const norm = net.features.getSubmodule("1") as InstanceType<typeof nn.BatchNorm2d>;
    new FakeTensorProp(gm).propagate(torch.zeros([2, 3, 8, 8]));
    expect(norm.training).toBe(true);
    expect(Number(norm.num_batches_tracked?.item())).toBe(0);
    expect(gm.getSubmodule("features.1")).toBe(norm);
    expect(gm.forward(torch.zeros([2, 3, 8, 8]))).toBeDefined();
  });

  it("refuse an input that is no tensor", () => {
    const gm = symbolicTrace(new Net());
    expect(() => new ShapeProp(gm, { fakeMode: true }).propagate({})).toThrow(/propagated from tensors/);
  });
});

function tensorMeta(tensor: Tensor): TensorMeta {
  const gm = symbolicTrace((x: Tensor) => torch.relu(x));
  new FakeTensorProp(gm).propagate(tensor);
  return gm.graph.findNodes({ op: "placeholder" })[0]?.meta.get("val") as TensorMeta;
}
