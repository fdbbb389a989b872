/** `guard` decides on sizes in a module as it is written: the check of its source does not mind. */
import { beforeAll, describe, expect, test, vi } from "vitest";
import * as tracefx from "../../src/index.ts";
import { Dim, exportProgram, guard, init, nn, operator, symbolicTrace, type Tensor, torch } from "../../src/index.ts";
import { rewrite } from "../../src/plugin/rewrite.ts";
import { thrown as refused } from "../thrown.ts";

beforeAll(async () => void (await init()));

/** Every way to decide by it: of three rows or fewer `x + 1`, else `x * 3`. */
const WAYS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  if: (x) => {
    if (guard(operator.gt(x.size(0), 3))) return x.mul(3);
    return x.add(1);
  },
  "?:": (x) => (guard(operator.gt(x.shape[0] as number, 3)) ? x.mul(3) : x.add(1)),
  "!": (x) => (!guard(operator.gt(x.size(0), 3)) ? x.add(1) : x.mul(3)),
  "a variable": (x) => {
    const [rows] = x.shape;
    const isLong = guard(operator.gt(rows as number, 3));
    return isLong && x.dim() === 2 ? x.mul(3) : x.add(1);
  },
  switch: (x) => {
    switch (guard(operator.gt(x.size(0), 3))) {
      case true:
        return x.mul(3);
      default:
        return x.add(1);
    }
  },
  "===": (x) => (guard(operator.gt(x.size(0), 3)) === true ? x.mul(3) : x.add(1)),
  "by its namespace": (x) => (tracefx.guard(operator.gt(x.size(0), 3)) ? x.mul(3) : x.add(1)),
  "a predicate": (x) => (x.shape.filter((size) => guard(operator.gt(size, 3))).length === 1 ? x.mul(3) : x.add(1)),
  "a loop": (x) => {
    while (guard(operator.gt(x.size(0), 3))) return x.mul(3);
    return x.add(1);
  },
  "a condition of several": (x) =>
    guard(operator.gt(x.size(0), 3)) && guard(operator.lt(x.size(0), 64)) ? x.mul(3) : x.add(1),
};

function asksElements(x: Tensor): Tensor {
  return guard(x.gt(3)) ? x.mul(3) : x.add(1);
}

describe("a decision by guard", () => {
  test.each(Object.entries(WAYS))("%s", (_, forward) => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    class Net extends nn.Module {
      override forward = forward;
    }
    const module = new Net();
    const run = (x: Tensor, rows: number): unknown => {
      using program = exportProgram(module, [x], {}, { dynamicShapes: { x: { 0: Dim.AUTO } } }).module();
      return program(torch.ones(rows, 2));
    };
    expect(run(torch.ones(5, 2), 9)).toEqual(torch.full([9, 2], 3, { dtype: "float32" }));
    expect(run(torch.ones(3, 2), 2)).toEqual(torch.full([2, 2], 2, { dtype: "float32" }));
    expect(refused(() => run(torch.ones(5, 2), 3)).code).toBe("FX0603");
    // What only the source check could say against it.
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
  });

  test("is taken by the number itself where the module runs by itself", () => {
    expect([2, 3, 4].map((rows) => guard(operator.gt(rows, 3)))).toEqual([false, false, true]);
  });

  test("refuses unbacked numbers, and what is no comparison", () => {
    class Asks extends nn.Module {
      override forward(x: Tensor): Tensor {
        return guard(operator.gt(x.sum().item(), 3)) ? x.mul(3) : x.add(1);
      }
    }
    expect(refused(() => exportProgram(new Asks(), [torch.ones(4)])).message).toContain(
      "Could not guard on data-dependent",
    );
    expect(refused(() => symbolicTrace(asksElements)).message).toContain("guard takes a comparison of sizes");
  });

  test("is what errors about sizes advise", () => {
    class Decides extends nn.Module {
      override forward(x: Tensor): Tensor {
        return x.shape[0] === 4 ? x.mul(3) : x.add(1);
      }
    }
    const dynamicShapes = { x: { 0: Dim.AUTO } };
    const { message } = refused(() => exportProgram(new Decides(), [torch.ones(4)], {}, { dynamicShapes }));
    expect(message).toContain("guard(operator.eq(x.size(0), 4))");
  });
});

test("the build plugin takes its answer", () => {
  expect(rewrite("if (guard(a)) b;")?.code).toContain('$test(guard(a), "if")');
});
