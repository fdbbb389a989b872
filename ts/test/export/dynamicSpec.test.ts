/**
 * Sizes of a call as objects, and what PyTorch 2.13 prints of them: `tests/oracle/gen_experimental.py` has the same program.
 */
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Condition,
  DictSpec,
  exportProgram,
  guard,
  init,
  IntVar,
  Module,
  ObjectSpec,
  operator,
  ParamsSpec,
  registerDataclass,
  SeqSpec,
  ShapesSpec,
  ShapeVar,
  STATIC,
  type Size,
  type Tensor,
  TensorSpec,
  torch,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { message } from "../ported/said.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

const recorded = experimental("specifications");

test("as PyTorch prints: specifications", () => {
  const said: unknown[] = [];
  const a = new ShapeVar("a", { max: 64 });
  const b = new ShapeVar("b");
  const n = new IntVar("n", { min: -3, optimizationHint: 5 });
  for (const it of [a, n, new IntVar()]) said.push(String(it), it.toJsonable());
  const tensor = new TensorSpec([operator.add(a.mul(2), 1) as Size, 10, STATIC, b]);
  const nested = new DictSpec({ x: tensor, y: new ObjectSpec({ weight: new SeqSpec([tensor, null, 1]) }) });
  const params = new ParamsSpec({ x: tensor, n, "*args": [tensor, null], "**kwargs": { k: nested } });
  const spec = new ShapesSpec(params, { assumptions: [operator.gt(a.add(b), 10) as Condition] });
  said.push(...[tensor, nested, params, spec].map(String), ...[tensor, nested].map((it) => it.toJsonable()));
  said.push(message(() => new ShapeVar("a", { min: -1 })));
  said.push(message(() => new TensorSpec(["x" as never])) !== "taken");
  said.push(message(() => new ParamsSpec({ "*others": null })));
  said.push(message(() => new ShapesSpec(undefined, { assumptions: [true] })) !== "taken");
  said.push(message(() => (a.gt(3) as { decide(): boolean }).decide()) !== "taken");
  const values = recorded.map((it): unknown => {
    if (it === "True") return true;
    return it.startsWith("{") ? JSON.parse(it) : it;
  });
  expect(said).toEqual(values);
  expect(`${a}`).toBe(String(a));
  expect(String(a.add(1))).toMatch(/^a#\d+ \+ 1$/);
  expect(() => Number(a.add(1))).toThrow("cannot become a number");
});

const given = (count: number): { parts: [Tensor, Tensor] } => ({ parts: [torch.ones(count), torch.ones(count)] });

class Both extends Module {
  override forward(x: Tensor, y: Tensor): Tensor {
    return x.sum(0).add(y.sum(0));
  }
}

const ones = (...sizes: number[]): Tensor => torch.ones(sizes);

describe("an export", () => {
  test("has a symbol for each variable, and sizes that follow from it", () => {
    const a = new ShapeVar("a", { max: 64 });
    const dynamicShapes = new ShapesSpec({
      x: new TensorSpec([a, null]),
      y: new TensorSpec([operator.add(a.mul(2), 1) as Size, 3]),
    });
    const module = exportProgram(new Both(), [torch.ones(4, 3), torch.ones(9, 3)], {}, { dynamicShapes }).module();
    expect((module(torch.ones(5, 3), torch.ones(11, 3)) as Tensor).toArray()).toEqual([16, 16, 16]);
    expect(() => module(torch.ones(5, 3), torch.ones(12, 3))).toThrow();
    expect(() => module(torch.ones(65, 3), torch.ones(131, 3))).toThrow();
  });

  test("asserts what was assumed of all calls", () => {
    const [a, b] = [new ShapeVar("a"), new ShapeVar("b")];
    const params = { x: new TensorSpec([a, null]), y: new TensorSpec([b, null]) };
    const dynamicShapes = new ShapesSpec(params, { assumptions: [operator.gt(a.add(b), 10) as Condition] });
    const module = exportProgram(new Both(), [torch.ones(6, 3), torch.ones(7, 3)], {}, { dynamicShapes }).module();
    expect((module(torch.ones(2, 3), torch.ones(9, 3)) as Tensor).toArray()).toEqual([11, 11, 11]);
    expect(() => module(torch.ones(2, 3), torch.ones(8, 3))).toThrow();
  });

  test("takes what is said of nested arguments and of ints", () => {
    class Nested extends Module {
      override forward(all: { parts: [Tensor, Tensor] }, n: number): Tensor {
        return all.parts[0].mul(n).add(all.parts[1]);
      }
    }
    const rows = new ShapeVar("rows");
    const parts = new SeqSpec([new TensorSpec([rows]), new TensorSpec([rows])]);
    const dynamicShapes = new ShapesSpec({ all: new DictSpec({ parts }), n: new IntVar("n") });
    const module = exportProgram(new Nested(), [given(4), 3], {}, { dynamicShapes }).module();
    expect((module(given(2), 5) as Tensor).toArray()).toEqual([6, 6]);
  });

  test("takes a variable to be one wherever it stands, and variables of one name for others", () => {
    class Three extends Module {
      override forward(x: Tensor, y: Tensor, n: number): Tensor {
        return x.sum().add(y.sum()).mul(n);
      }
    }
    const n = new IntVar("n");
    const spec = { x: new TensorSpec([n]), y: new TensorSpec([operator.add(n.mul(2), 1) as Size]), n };
    const dynamicShapes = new ShapesSpec(spec);
    const module = exportProgram(new Three(), [ones(4), ones(9), 4], {}, { dynamicShapes }).module();
    expect((module(ones(3), ones(7), 3) as Tensor).item()).toBe(30);
    expect(() => module(ones(3), ones(7), 4)).toThrow();
    expect(() => module(ones(3), ones(8), 3)).toThrow();
    const wrong = (): unknown => exportProgram(new Three(), [ones(4), ones(9), 5], {}, { dynamicShapes });
    expect(wrong).toThrow();
    class Four extends Module {
      override forward(a: Tensor, b: Tensor, c: Tensor): Tensor {
        return a.sum().add(b.sum()).add(c.sum());
      }
    }
    const [a, b, c] = ["s", "s_2", "s"].map((it) => new TensorSpec([new ShapeVar(it)])) as [
      TensorSpec,
      TensorSpec,
      TensorSpec,
    ];
    const others = new ShapesSpec({ a, b, c });
    const free = exportProgram(new Four(), [ones(4), ones(5), ones(6)], {}, { dynamicShapes: others }).module();
    expect((free(ones(7), ones(2), ones(3)) as Tensor).item()).toBe(12);
  });

  test("asserts what is assumed of a variable that stands in a derived size alone", () => {
    const a = new ShapeVar("a");
    const x = new TensorSpec([operator.add(a.mul(2), 1) as Size, null]);
    const dynamicShapes = new ShapesSpec({ x }, { assumptions: [operator.gt(a, 3) as Condition] });
    const module = exportProgram(new Both(), [torch.ones(9, 3), torch.ones(4, 3)], {}, { dynamicShapes }).module();
    expect((module(torch.ones(11, 3), torch.ones(4, 3)) as Tensor).toArray()).toEqual([15, 15, 15]);
    expect(() => module(torch.ones(7, 3), torch.ones(4, 3))).toThrow();
  });

  test("knows what is assumed while the module runs", () => {
    const a = new ShapeVar("a");
    class Decides extends Module {
      override forward(x: Tensor): Tensor {
        return guard(operator.gt(x.size(0), 2)) ? x.sum(0) : x.mean(0);
      }
    }
    const spec = (assumptions: Condition[]) => ({
      dynamicShapes: new ShapesSpec({ x: new TensorSpec([a, null]) }, { assumptions }),
    });
    const assumed = exportProgram(new Decides(), [torch.ones(9, 3)], {}, spec([operator.gt(a, 3) as Condition]));
    expect(() => assumed.module()(torch.ones(3, 3))).toThrow();
    expect(thrown(() => exportProgram(new Decides(), [torch.ones(9, 3)], {}, spec([]))).kind).toBe(
      "ConstraintViolation",
    );
    const wrong = spec([operator.gt(a, 10) as Condition]);
    expect(() => exportProgram(new Decides(), [torch.ones(9, 3)], {}, wrong)).toThrow();
  });

  test("takes what is said of the items of a rest parameter, and of the fields of a registered class", () => {
    class Batch {
      readonly image: Tensor;
      readonly mask: Tensor;
      constructor(image: Tensor, mask: Tensor) {
        this.image = image;
        this.mask = mask;
      }
    }
    registerDataclass(Batch, { serializedTypeName: "dynamicSpec.test.Batch" });
    class Rest extends Module {
      override forward(batch: Batch, ...others: Tensor[]): Tensor {
        return others.reduce((sum, it) => sum.add(it.sum()), batch.image.sum().add(batch.mask.sum()));
      }
    }
    const exported = (spec: ShapesSpec) =>
      exportProgram(new Rest(), [new Batch(ones(3), ones(4)), ones(5), ones(6)], {}, { dynamicShapes: spec }).module();
    const [a, b] = [new ShapeVar("a"), new ShapeVar("b")];
    const module = exported(
      new ShapesSpec({ batch: new ObjectSpec({ mask: new TensorSpec([a]) }), "*args": [null, new TensorSpec([b])] }),
    );
    expect((module(new Batch(ones(3), ones(7)), ones(5), ones(8)) as Tensor).item()).toBe(23);
    expect(() => module(new Batch(ones(3), ones(7)), ones(6), ones(8))).toThrow();
    const unknown = new ShapesSpec({ batch: new ObjectSpec({ masks: null }) });
    expect(() => exported(unknown)).toThrow("ObjectSpec names masks, and there are image, mask");
    expect(() => exported(new ShapesSpec({ "*args": [null, null, null] }))).toThrow("3 entries, and the list has 2");
    const none = (): unknown =>
      exportProgram(new Both(), [ones(3), ones(3)], {}, { dynamicShapes: new ShapesSpec({ "*args": [null] }) });
    expect(none).toThrow("no arguments of a rest parameter");
  });

  test("computes with variables what it computes with sizes", () => {
    const n = new IntVar("n");
    const texts = [n.abs(), n.lshift(2), n.bitwiseAnd(3)].map(String);
    expect(texts.map((it) => it.replaceAll(/#\d+/g, ""))).toEqual(["Max(n, -n)", "4*n", "PythonMod(n, 4)"]);
  });

  test("has variables with values", () => {
    expect(() => new IntVar("n", { min: 4, max: 3 })).toThrow("n has no values: min=4 is above max=3");
    expect(() => new IntVar("n", { min: Number.NaN })).toThrow("ints as its bounds");
    expect(() => new ShapeVar("n", { max: 2.5 })).toThrow("ints as its bounds");
  });

  test("refuses what its inputs cannot be", () => {
    const x = [torch.ones(4, 3), torch.ones(4, 3)];
    const [a, b] = [new ShapeVar("a"), new ShapeVar("b")];
    const refused = (params: Record<string, TensorSpec>, assumptions: readonly Condition[] = []): string =>
      thrown(() => exportProgram(new Both(), x, {}, { dynamicShapes: new ShapesSpec(params, { assumptions }) })).reason;
    expect(refused({ z: new TensorSpec([a, null]) })).toContain("names the parameter z");
    expect(refused({ x: new TensorSpec([a.mul(b), null]) })).toContain("not a");
    expect(refused({}, [operator.gt(a, 3) as Condition])).toContain("no input has the size that is assumed");
    class Sum extends Module {
      override forward(one: Tensor, other: Tensor): Tensor {
        return one.add(other);
      }
    }
    const dynamicShapes = new ShapesSpec({ one: new TensorSpec([a, null]), other: new TensorSpec([b, null]) });
    expect(thrown(() => exportProgram(new Sum(), x, {}, { dynamicShapes })).reason).toContain("b = a");
  });
});
