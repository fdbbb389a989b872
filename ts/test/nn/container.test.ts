import { beforeAll, describe, expect, test } from "vitest";
import { FxError, init, nn, symbolicTrace, tensor, torch } from "../../src/index.ts";

beforeAll(() => init());

const kindOf = (body: () => unknown): string => {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error.kind;
    throw error;
  }
  return "nothing was thrown";
};

describe("Sequential", () => {
  test("calls its modules one after another", () => {
    const net = new nn.Sequential(new nn.Flatten(0), new nn.ReLU(), new nn.Softmax(0));
    expect(net.forward(tensor([[-1.5, 0.0]])).toArray()).toEqual([0.5, 0.5]);
    expect(net.length).toBe(3);
    expect(net[1]).toBe(net.at(-2));
  });

  test("has names of its own where it gets them", () => {
    const net = new nn.Sequential({ act: new nn.ReLU(), last: new nn.Tanh() });
    expect([...net.namedChildren().keys()]).toEqual(["act", "last"]);
    expect([...net.slice(1).namedChildren().keys()]).toEqual(["last"]);
    expect(String(new nn.Sequential(new Map([["a", new nn.ReLU()]])))).toBe("Sequential(\n  (a): ReLU()\n)");
    expect(kindOf(() => net.insert(0, new nn.ReLU()))).toBe("GraphArgument");
  });

  test("grows and shrinks, and its names follow", () => {
    const [a, b, c, d] = [new nn.ReLU(), new nn.Tanh(), new nn.Sigmoid(), new nn.SiLU()] as const;
    const net = new nn.Sequential(a).append(c).insert(1, b).extend([d]);
    expect([...net]).toEqual([a, b, c, d]);
    expect(net.pop(1)).toBe(b);
    expect([...net.namedChildren()]).toEqual([
      ["0", a],
      ["1", c],
      ["2", d],
    ]);
    net.set(-1, b);
    expect(net[2]).toBe(b);
    expect(kindOf(() => net.at(3))).toBe("IndexOutOfRange");
    expect(kindOf(() => net.insert(9, a))).toBe("IndexOutOfRange");
    expect(kindOf(() => net.append(3 as never))).toBe("GraphArgument");
  });

  test("is looked into by a trace, and no leaf", () => {
    const net = new nn.Sequential(new nn.ReLU(), new nn.Linear(1, 1));
    expect([...symbolicTrace(net).graph.nodes].map((node) => node.target)).toEqual(["input", "0", "1", "output"]);
    expect(nn.isBuiltinModule(net)).toBe(false);
  });
});

describe("ModuleList and ModuleDict", () => {
  test("register their modules", () => {
    const list = new nn.ModuleList([new nn.Linear(1, 1), new nn.Linear(1, 1)]);
    expect([...list.namedParameters().keys()]).toEqual(["0.weight", "0.bias", "1.weight", "1.bias"]);
    expect(list.slice(1)[0]).toBe(list[1]);
    const dict = new nn.ModuleDict({ a: new nn.ReLU() }).set("b", new nn.Tanh());
    expect([...dict.keys()]).toEqual(["a", "b"]);
    expect([...dict].map(([name, it]) => `${name}: ${it}`)).toEqual(["a: ReLU()", "b: Tanh()"]);
    expect([dict.size, dict.has("a"), dict.has("c"), dict.delete("a"), dict.delete("a")]).toEqual([
      2,
      true,
      false,
      true,
      false,
    ]);
    expect(String(dict.pop("b"))).toBe("Tanh()");
    expect(kindOf(() => dict.get("b"))).toBe("AttributeMissing");
    expect(kindOf(() => dict.set("keys", new nn.ReLU()))).toBe("GraphArgument");
    expect(kindOf(() => list.call())).toBe("NotImplemented");
    dict.update(new nn.ModuleDict({ z: new nn.ReLU() })).clear();
    expect(dict.size).toBe(0);
  });

  test("print as in PyTorch", () => {
    const blocks = [1, 2].map(() => new nn.Sequential(new nn.ReLU()));
    expect(String(new nn.ModuleList([...blocks, new nn.Tanh()]))).toBe(
      "ModuleList(\n  (0-1): 2 x Sequential(\n    (0): ReLU()\n  )\n  (2): Tanh()\n)",
    );
    expect(String(new nn.ModuleList())).toBe("ModuleList()");
  });
});

describe("ParameterList and ParameterDict", () => {
  test("make parameters of tensors", () => {
    const list = new nn.ParameterList([torch.ones([2]), torch.zeros([1])]);
    expect([...list.namedParameters().keys()]).toEqual(["0", "1"]);
    expect([...list].every((it) => it.requiresGrad)).toBe(true);
    list.set(-1, torch.ones([4]));
    expect(list.at(1).shape).toEqual([4]);
    expect(list.slice(1).at(0)).toBe(list.at(1));
    const dict = new nn.ParameterDict({ a: torch.ones([2]) }).update({ b: torch.ones([3]) });
    expect([...dict.namedParameters().keys()]).toEqual(["a", "b"]);
    expect([...dict.values()].map((it) => it.shape)).toEqual([[2], [3]]);
    expect(dict.delete("a")).toBe(true);
    expect([...dict].length).toBe(1);
    expect(kindOf(() => dict.get("a"))).toBe("AttributeMissing");
    expect(kindOf(() => list.append(3 as never))).toBe("GraphArgument");
    expect(kindOf(() => list.call())).toBe("NotImplemented");
  });

  test("print as in PyTorch", () => {
    expect(String(new nn.ParameterDict({ a: torch.ones([3, 2]) }))).toBe(
      "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 3x2])",
    );
    const list = new nn.ParameterList([torch.ones([3, 2], { dtype: "float64" }), torch.ones([])]);
    expect(String(list)).toBe(
      "ParameterList(\n    (0): Parameter containing: [torch.float64 of size 3x2]\n    (1): Parameter containing: [torch.float32 of size ]\n)",
    );
  });

  test("are read by a trace", () => {
    class Net extends nn.Module {
      scales = new nn.ParameterList([torch.ones([2])]);
      override forward(x: ReturnType<typeof torch.ones>) {
        return x.mul(this.scales.at(0));
      }
    }
    const nodes = [...symbolicTrace(new Net()).graph.nodes].map((node) => `${node.op} ${node.target}`);
    expect(nodes).toEqual(["placeholder x", "get_attr scales.0", "call_method mul", "output output"]);
  });
});

/** How many entries of maps are looked at while this runs. */
function entriesSeen(body: () => void): number {
  let n = 0;
  const names = ["values", "keys", "entries", Symbol.iterator] as const;
  const before = names.map((name) => Map.prototype[name]);
  for (const name of names) {
    const original = Map.prototype[name] as (this: Map<unknown, unknown>) => IterableIterator<unknown>;
    Reflect.set(Map.prototype, name, function* counted(this: Map<unknown, unknown>): Generator {
      for (const it of Reflect.apply(original, this, [])) {
        n++;
        yield it;
      }
    });
  }
  try {
    body();
  } finally {
    for (const [at, name] of names.entries()) Reflect.set(Map.prototype, name, before[at]);
  }
  return n;
}

const relu = (): nn.ReLU => new nn.ReLU();

describe("containers of many", () => {
  const sizes = [64, 512] as const;
  const uses: Record<string, (n: number) => void> = {
    "are made": (n) => void new nn.ModuleList(Array.from({ length: n }, relu)),
    "are appended to": (n) => {
      const list = new nn.Sequential();
      for (let at = 0; at < n; at++) list.append(relu());
      expect(list.length).toBe(n);
    },
    "are read and set by position": (n) => {
      const list = new nn.ModuleList(Array.from({ length: n }, relu));
      for (let at = 0; at < list.length; at++) list.set(at, list.at(-1 - at));
    },
    "of names are asked how many they have": (n) => {
      const dict = new nn.ModuleDict();
      for (let at = 0; at < n; at++) dict.set(`m${dict.size}`, relu());
    },
    "of parameters are made and walked": (n) => {
      const one = new nn.Parameter(torch.ones([1]));
      const list = new nn.ParameterList(Array.from({ length: n }, () => one));
      for (let at = 0; at < list.length; at++) list.set(at, list.at(at));
      expect([...list].length).toBe(n);
      const dict = new nn.ParameterDict();
      for (let at = 0; at < n; at++) dict.set(`p${dict.size}`, one);
      expect([...dict].length).toBe(n);
    },
  };

  for (const [what, use] of Object.entries(uses)) {
    test(`${what} in linear time`, () => {
      const [few, many] = sizes.map((n) => entriesSeen(() => use(n))) as [number, number];
      // A walk over all for each would be 64 times as many.
      expect(many).toBeLessThanOrEqual(16 * few + 16);
    });
  }

  test("tell their modules after every change", () => {
    const [a, b, c] = [relu(), relu(), relu()];
    const list = new nn.ModuleList([a, b]);
    expect(list.length).toBe(2);
    list.registerBuffer("buffer", torch.ones([1]));
    expect([list.length, list.at(1)]).toEqual([2, b]);
    list.attributes.set("1", { kind: "module", module: c });
    expect([...list]).toEqual([a, c]);
    list.attributes.set("0", { kind: "constant", tensor: torch.ones([1]) });
    expect([...list]).toEqual([c]);
    list.attributes.delete("1");
    expect(list.length).toBe(0);
    list.attributes.delete("0");
    list.append(b).extend(list);
    expect([...list]).toEqual([b, b]);
    list.attributes.clear();
    expect(list.append(a).at(0)).toBe(a);
  });
});
