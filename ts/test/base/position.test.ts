/** Finding out where a refused function stands does nothing that the function does. */
import { expect, test } from "vitest";
import { exportProgram, nn, symbolicTrace, type Tensor, torch, init } from "../../src/index.ts";
import { FxError } from "../../src/base/errors.ts";

await init();

function refusalOf(run: () => unknown): FxError {
  try {
    run();
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

let effects = 0;
const effect = (): number => ++effects;
const start = async (x: Tensor): Promise<unknown> => {
  effects += 1;
  await Promise.resolve();
  return x.relu();
};
const config = {
  get flag(): boolean {
    return effect() > 0;
  },
};
const list: unknown[] = [];

/** Functions that do something before they decide. */
const ACTING: Record<string, (x: Tensor) => unknown> = {
  "calls a function": (x) => (effect() > 0 && x.any() ? x : x.neg()),
  "starts something that goes on later": (x) => {
    void start(x);
    return x.any() ? x : x.neg();
  },
  "gives a traced value to a function": (x) => {
    void start(x).then(() => effect());
    if (x.any()) return x;
    return x.neg();
  },
  "changes a variable": (x) => {
    effects += 1;
    return x.any() ? x : x.neg();
  },
  "fills an array": (x) => {
    list.push(1);
    effects += list.length;
    return x.any() ? x : x.neg();
  },
  "reads what is computed": (x) => (config.flag && x.any() ? x : x.neg()),
  "makes an object": (x) => {
    const { made } = new (class {
      made = effect();
    })();
    return x.any() ? x.mul(made) : x.neg();
  },
  "catches what it throws": (x) => {
    try {
      x.relu();
    } catch (error) {
      effect();
      throw error;
    }
    return x.any() ? x : x.neg();
  },
  "takes another value for a traced one": (x) => {
    let y = x;
    y = { act: effect } as unknown as Tensor;
    (y as unknown as { act(): number }).act();
    return x.any() ? x : x.neg();
  },
};

test.each(Object.entries(ACTING))("a function that %s is not run", (_, fn) => {
  effects = 0;
  list.length = 0;
  expect(refusalOf(() => symbolicTrace(fn)).message).toMatch(/FX0801.*\(line \d+, column \d+ of \w*[^/]*\)/);
  class Acting extends nn.Module {
    override forward(x: Tensor): unknown {
      return fn(x);
    }
  }
  Reflect.set(Acting.prototype, "forward", fn);
  expect(refusalOf(() => exportProgram(new Acting(), [torch.ones(2)])).kind).toBe("TraceControlFlow");
  expect(effects).toBe(0);
});

test("a getter of the module is not run", () => {
  class Net extends nn.Module {
    reads = 0;
    get limit(): number {
      this.reads += 1;
      return 2;
    }
    override forward(x: Tensor): Tensor {
      const { limit } = this;
      return this.limit > limit && x.any() ? x : x.neg();
    }
  }
  const net = new Net();
  expect(refusalOf(() => symbolicTrace(net)).kind).toBe("TraceControlFlow");
  expect(net.reads).toBe(0);
});

test("a function that only uses traced values is told with its line", () => {
  class Net extends nn.Module {
    linear = new nn.Linear(2, 2);
    scale = 2;
    override forward(x: Tensor, y: Tensor): Tensor {
      const [double, z] = [2 * this.scale, x];
      if (this.training && double > 5) return z;
      return this.linear.forward(torch.add(x, y)) ? x : y;
    }
  }
  expect(refusalOf(() => symbolicTrace(new Net())).message).toMatch(/position\.test\.ts:\d+:\d+\)/);
  expect(refusalOf(() => symbolicTrace((x: Tensor) => (x.any() ? 1 : 2))).message).toMatch(/position\.test\.ts:\d+/);
});
