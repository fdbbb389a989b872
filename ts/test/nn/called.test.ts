/** Modules are called as in Python: `net(x)`. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  cond,
  deepCopy,
  exportProgram,
  F,
  init,
  loadGraphModule,
  Module,
  nn,
  saveGraphModule,
  symbolicTrace,
  type Tensor,
  torch,
  wrap,
} from "../../src/index.ts";

beforeAll(() => init());

class Net extends Module {
  linear = new nn.Linear(2, 3);
  blocks = new nn.Sequential(new nn.Linear(3, 3), new nn.ReLU());
  list = new nn.ModuleList([new nn.Tanh()]);
  override forward(x: Tensor): Tensor {
    let res = this.blocks(this.linear(x));
    for (const layer of this.list) res = layer(res) as Tensor;
    return res;
  }
}

/** The same with `forward`. */
class Spelled extends Net {
  override forward(x: Tensor): Tensor {
    let res = this.blocks.forward(this.linear.forward(x));
    for (const layer of this.list) res = layer.call(res) as Tensor;
    return res;
  }
}

test("a call gives what `forward` gives, with hooks", () => {
  const net = new Net();
  const x = torch.randn([4, 2]);
  expect(net(x).toArray()).toEqual(net.forward(x).toArray());
  const seen: string[] = [];
  net.registerForwardPreHook(() => void seen.push("before"));
  net.registerForwardHook(() => void seen.push("after"));
  net(x);
  expect(seen).toEqual(["before", "after"]);
});

test("traces and programs are those of `forward`", () => {
  const net = new Net();
  const x = torch.randn([4, 2]);
  expect(String(symbolicTrace(net).graph)).toBe(String(symbolicTrace(new Spelled()).graph));
  const [program, spelled] = [exportProgram(net, [x]), exportProgram(new Spelled(), [x])];
  expect(String(program.graph)).toBe(String(spelled.graph));
});

test("nodes know the line of the call", () => {
  const gm = symbolicTrace(new Net());
  expect(gm.graph.find("linear")?.stackTrace?.split("\n")[0]).toMatch(/forward .*called\.test\.ts/);
});

test("graph modules, copies and modules from files are called, too", () => {
  const net = new Net();
  const x = torch.randn([4, 2]);
  const gm = symbolicTrace(net);
  expect((gm(x) as Tensor).toArray()).toEqual(net(x).toArray());
  expect(deepCopy(net)(x).toArray()).toEqual(net(x).toArray());
  const loaded = loadGraphModule(saveGraphModule(gm));
  expect((loaded(x) as Tensor).toArray()).toEqual(net(x).toArray());
});

test("a graph that calls the graph of a branch is traced again", () => {
  class Branches extends Module {
    override forward(x: Tensor): Tensor {
      return cond(
        x.sum().gt(0),
        (it) => it.relu(),
        (it) => it.neg(),
        [x],
      ) as Tensor;
    }
  }
  const gm = symbolicTrace(new Branches());
  const again = symbolicTrace(gm);
  expect(String(again.graph)).toBe(String(gm.graph));
});

describe("a module is an object all the same:", () => {
  test("it has no members of functions", () => {
    const net = new Net();
    expect(Reflect.ownKeys(net)).toEqual(["attributes", "training"]);
    for (const name of ["name", "length", "bind", "prototype"]) expect(name in net, name).toBe(false);
    expect(Object.getPrototypeOf(net)).toBe(Net.prototype);
    expect([net instanceof Net, net instanceof Module]).toEqual([true, true]);
  });

  test("it cannot be wrapped as a function, and its name is told in errors", () => {
    expect(() => wrap(new nn.ReLU() as never, "relu")).toThrow("wrap takes a function");
    const graph = symbolicTrace(new nn.ReLU()).graph;
    expect(() => graph.callFunction("torch.add", [new nn.ReLU() as never])).toThrow("an object of class ReLU");
  });

  test("its class may have members that functions have", () => {
    class Named extends Module {
      override name = "n";
      override forward(): string {
        return this.name;
      }
    }
    expect(new Named()()).toBe("n");
    expect(new Named().name).toBe("n");
  });
});

test("functions stand under PyTorch's name, too", () => {
  expect(nn.functional.relu).toBe(F.relu);
  expect(`${symbolicTrace((x: Tensor) => nn.functional.relu(x)).graph}`).toContain("target=torch.nn.functional.relu");
});
