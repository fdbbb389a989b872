import { beforeAll, describe, expect, it } from "vitest";
import { differentiateOperator, inferOperator } from "../../src/engine/dispatch.ts";
import { init, restart } from "../../src/engine/engine.ts";
import { NotImplementedError, OperatorError } from "../../src/base/errors.ts";
import { openProgram } from "../../src/export/exportedProgram.ts";
import { programOf } from "../../src/export/ofGraphModule.ts";
import { normalizeFunction } from "../../src/fx/normalize.ts";
import type { OperatorFunction } from "../../src/library/operator.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { torch } from "../../src/torch.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { largestDifference, open, tensorsOf } from "../export/fixtures.ts";
import { thrown } from "../thrown.ts";
// oxlint-disable-next-line import/no-unassigned-import -- puts the members on tensors
import "../../src/install.ts";

beforeAll(() => init());

const { library } = torch;
const SAME = "(Tensor x) -> Tensor";

const like: OperatorFunction = (x: Tensor) => torch.emptyLike(x);

/** An operator of the namespace `mylib`. */
function op(name: string): (...args: unknown[]) => unknown {
  const found = torch.ops["mylib"]?.[name];
  if (found === undefined) throw new Error(`no operator is called ${name}`);
  return found;
}

/** What calling an operator with this kernel is refused with. */
function refusalOf(name: string, schema: string, kernel: OperatorFunction, fake?: OperatorFunction) {
  const made = library.customOp(`mylib::${name}`, kernel, { schema });
  if (fake !== undefined) made.registerFake(fake);
  return thrown(() => made(tensor([1, 2])));
}

describe("an operator of one's own", () => {
  library.define("mylib::scale", "(Tensor x, *, float alpha=2.0, int[] dims=[1, 2]) -> Tensor");
  library.impl("mylib::scale", "cpu", (x: Tensor, { alpha }: { alpha: number }) => x.mul(alpha));
  library.registerFake("mylib::scale", (x: Tensor) => torch.emptyLike(x));

  it("is called by name, with the defaults of its schema", () => {
    expect(op("scale")(tensor([1.5, 2]))).toEqual(tensor([3, 4], { dtype: "float32" }));
    expect(op("scale")(tensor([1.5, 2]), { alpha: 3 })).toEqual(tensor([4.5, 6]));
    const overload = torch.ops["mylib"]?.["scale"]?.["default"];
    expect(overload?.(tensor([1.5]))).toEqual(tensor([3], { dtype: "float32" }));
    expect(thrown(() => op("scale")(1, 2)).kind).toBe("SchemaMismatch");
  });

  it("is traced under its own name, and runs in a graph", () => {
    const gm = symbolicTrace((x: Tensor) => (op("scale")(x, { alpha: 4 }) as Tensor).relu());
    expect(String(gm.graph)).toContain(
      "call_function[target=torch.ops.mylib.scale](args = (%x,), kwargs = {alpha: 4})",
    );
    expect(gm.forward(tensor([-1.5, 2.5]))).toEqual(tensor([0, 10], { dtype: "float32" }));
  });

  it("says what it gives without computing it", () => {
    const known = inferOperator("mylib.scale", [tensor([1.5, 2])]);
    expect(known).toMatchObject({ dtype: "float32", sizes: [2] });
    library
      .customOp("mylib::pairs", (x: Tensor) => torch.stack([x, x], 1), { schema: SAME })
      .registerFake((x: Tensor) =>
        x
          .newEmpty([...x.shape, 2])
          .transpose(0, 1)
          .transpose(0, 1),
      );
    expect(inferOperator("mylib.pairs", [tensor([1, 2, 3])])).toMatchObject({ dtype: "int64", sizes: [3, 2] });
    expect(op("pairs")(tensor([1, 2]))).toEqual(
      tensor([
        [1, 1],
        [2, 2],
      ]),
    );
    library.define("mylib::unknown", SAME);
    expect(thrown(() => inferOperator("mylib.unknown", [tensor([1])])).message).toContain("registerFake");
  });

  it("is saved by name", () => {
    const scale = torch.ops["mylib"]?.["scale"]?.["default"] as (...args: unknown[]) => unknown;
    const gm = symbolicTrace((x: Tensor) => scale(x, { alpha: 0.5 }));
    const program = openProgram(programOf(gm).toFxg(), {});
    expect(String(program.graph)).toContain("[target=torch.ops.mylib.scale.default]");
    expect(program.module()(tensor([3, 5], { dtype: "float32" }))).toEqual(tensor([1.5, 2.5]));
    expect(program.inspect()).toContain("All operators are supported.");
  });

  it("has arguments that are normalized", () => {
    const normalized = normalizeFunction("torch.ops.mylib.scale", { args: [1], kwargs: {} });
    expect(normalized?.kwargs["alpha"]).toMatchObject({ value: 2 });
  });

  it("is there again after a restart", () => {
    restart();
    expect(op("scale")(tensor([1.5]))).toEqual(tensor([3], { dtype: "float32" }));
  });
});

describe("recorded programs", () => {
  it("name the operator that is missing, and run once it is defined", async () => {
    const program = await open("custom_op");
    const inputs = tensorsOf("custom_op/inputs.safetensors");
    const problem = thrown(() => program.module()(inputs.get("in0")));
    expect(problem).toBeInstanceOf(NotImplementedError);
    expect(problem.message).toContain("fxtest.scale_add.default");
    expect(problem.help).toContain("torch.library");
    library.customOp("fxtest::scale_add", (x: Tensor, y: Tensor, alpha: number) => x.mul(alpha).add(y), {
      schema: '(Tensor x, Tensor y, float alpha=2.0, str names="n") -> Tensor',
    });
    const output = program.module()(inputs.get("in0")) as Tensor;
    const want = tensorsOf("custom_op/expected.safetensors").get("out0") as Tensor;
    expect(largestDifference(output, want)).toBeLessThan(1e-5);
  });

  it("write to arguments, decomposed or not", async () => {
    library.customOp("fxtest::accum_", (acc: Tensor, x: Tensor) => void acc.add_(x), {
      schema: "(Tensor(a!) acc, Tensor x) -> ()",
    });
    const input = tensorsOf("custom_op_mutating/inputs.safetensors").get("in0") as Tensor;
    const want = tensorsOf("custom_op_mutating/expected.safetensors");
    for (const name of ["custom_op_mutating", "custom_op_mutating__core"]) {
      const program = await open(name);
      for (const same of [program, program.runDecompositions()]) {
        const run = same.module();
        const output = run(input) as Tensor;
        expect(largestDifference(output, want.get("out0") as Tensor)).toBeLessThan(1e-5);
        expect(largestDifference(run.getTensor("b"), want.get("buffer.b") as Tensor)).toBeLessThan(1e-6);
      }
      expect(String(program.runDecompositions().graph)).toContain("auto_functionalized_v2");
    }
    const x = tensor([1.5, 2]);
    expect(torch.ops["fxtest"]?.["accum_"]?.(x, tensor([1, 1]))).toBe(null);
    expect(x).toEqual(tensor([2.5, 3], { dtype: "float32" }));
  });
});

describe("gradients", () => {
  it("are what was registered", () => {
    const sin = library.customOp("mylib::mysin", (x: Tensor) => x.sin(), { schema: SAME });
    const x = tensor([0, 1], { dtype: "float32" });
    const refused = thrown(() => differentiateOperator("mylib.mysin", [x], [tensor([1, 1], { dtype: "float32" })]));
    expect([refused.kind, refused.op]).toEqual(["NotImplemented", "mylib.mysin.default"]);
    sin.registerAutograd((ctx, grad: Tensor) => grad.mul((ctx.savedTensors[0] as Tensor).cos()), {
      setupContext: (ctx, [input]) => ctx.saveForBackward(input as Tensor),
    });
    const [grad] = differentiateOperator("mylib.mysin", [x], [tensor([2, 1], { dtype: "float32" })]);
    expect(
      (grad as Tensor)
        .sub(tensor([2, Math.cos(1)]))
        .abs()
        .max()
        .item(),
    ).toBeLessThan(1e-6);
    sin.registerAutograd(() => [tensor([1.5, 2]), null]);
    const uneven = thrown(() => differentiateOperator("mylib.mysin", [x], [x]));
    expect(uneven.message).toContain("mylib.mysin");
  });

  it("of built-in operators are there too", () => {
    const [grad] = differentiateOperator("aten.square", [tensor([3.5, 4])], [tensor([1, 1], { dtype: "float32" })]);
    expect(grad).toEqual(tensor([7, 8], { dtype: "float32" }));
  });
});

describe("what an operator is made of", () => {
  it("is a function of operators", () => {
    const { mul, add } = torch.ops.aten;
    library.define("mylib::affine", "(Tensor x, float scale, Tensor shift) -> Tensor");
    library.impl("mylib::affine", "CompositeImplicitAutograd", (x: Tensor, scale: number, shift: Tensor) =>
      add.Tensor(mul.Tensor(x, scale), shift),
    );
    expect(op("affine")(tensor([1.5, 2]), 2, tensor([1, 1]))).toEqual(tensor([4, 5], { dtype: "float32" }));
    const affine = torch.ops["mylib"]?.["affine"]?.["default"] as (...args: unknown[]) => unknown;
    const program = programOf(symbolicTrace((x: Tensor) => affine(x, 2, x)));
    expect(String(program.graph)).toContain("mylib.affine");
    expect(inferOperator("mylib.affine", [tensor([1.5]), 2, tensor([1.5])])).toMatchObject({ sizes: [1] });
    library.define("mylib::impossible", SAME);
    const refused = thrown(() =>
      library.impl("mylib::impossible", "CompositeImplicitAutograd", (x: Tensor) => x.relu()),
    );
    expect(refused.kind).toBe("GraphArgument");
    expect(thrown(() => library.registerFake("mylib::affine", like)).kind).toBe("InvalidOption");
    expect(thrown(() => library.registerAutograd("mylib::affine", () => null)).kind).toBe("InvalidOption");
    library.registerFake("mylib::impossible", like);
    const late = thrown(() =>
      library.impl("mylib::impossible", "CompositeImplicitAutograd", (x: Tensor) => add.Tensor(x, 1)),
    );
    expect(late.message).toContain("is made of other operators");
    restart();
    expect(op("affine")(tensor([1.5]), 2, tensor([1]))).toEqual(tensor([4], { dtype: "float32" }));
  });
});

describe("what a kernel does wrong", () => {
  it("is an error that names the operator", () => {
    const plain = refusalOf("throws", SAME, () => {
      throw new RangeError("too much");
    });
    expect(plain).toBeInstanceOf(OperatorError);
    expect([plain.code, plain.kind, plain.op]).toEqual(["FX0307", "KernelFailed", "mylib.throws.default"]);
    expect(plain.message).toContain("RangeError: too much");
    expect(plain.cause).toBeInstanceOf(RangeError);
    const own = refusalOf("misfits", SAME, (x: Tensor) => x.add(tensor([1, 2, 3])));
    expect([own.kind, own.op]).toEqual(["ShapeMismatch", "aten.add.Tensor"]);
    const inside = thrown(() => symbolicTrace((x: Tensor) => op("throws")(x)).forward(tensor([1])));
    expect(inside.op).toBe("mylib.throws.default");
  });

  it("is a result that the schema or the fake implementation does not allow", () => {
    expect(refusalOf("none", SAME, () => undefined).kind).toBe("SchemaMismatch");
    expect(refusalOf("many", SAME, (x: Tensor) => [x.clone(), x.clone()]).kind).toBe("SchemaMismatch");
    expect(refusalOf("number", SAME, () => 1).message).toContain("should be a Tensor");
    expect(refusalOf("odd", SAME, () => () => 1).kind).toBe("InputType");
    expect(refusalOf("later", SAME, () => Promise.resolve(1)).message).toContain("promise");
    expect(refusalOf("nothing", "(Tensor x) -> ()", (x: Tensor) => x.clone()).message).toContain(
      "1 results instead of 0",
    );
    expect(refusalOf("itself", SAME, (x: Tensor) => x).kind).toBe("InvalidArgument");
    expect(refusalOf("short", SAME, () => tensor([1]), like).kind).toBe("ShapeMismatch");
    expect(refusalOf("float", SAME, () => tensor([1.5, 2]), like).kind).toBe("DTypeMismatch");
    expect(
      refusalOf(
        "fails",
        SAME,
        (x: Tensor) => x.clone(),
        () => {
          throw new Error("no idea");
        },
      ).message,
    ).toContain("the fake implementation of mylib.fails.default threw Error: no idea");
  });

  it("is going too deep, or making the engine anew, and neither harms the engine", () => {
    const deep = library.customOp("mylib::deep", (x: Tensor): unknown => deep(x), { schema: SAME });
    expect(thrown(() => deep(tensor([1]))).kind).toBe("LimitExceeded");
    expect(refusalOf("anew", SAME, () => restart()).kind).toBe("InvalidOption");
    expect(torch.add(tensor([1]), 1)).toEqual(tensor([2]));
  });
});

it("may call the engine, and define operators, while it is called", () => {
  const outer = library.customOp(
    "mylib::outer",
    (x: Tensor) => {
      library.customOp("mylib::inner", (y: Tensor) => y.mul(3), { schema: SAME });
      const gm = symbolicTrace((y: Tensor) => op("inner")(y));
      return (gm.forward(x) as Tensor).add(1);
    },
    { schema: SAME },
  );
  expect(outer(tensor([1, 2]))).toEqual(tensor([4, 7]));
});

describe("a definition", () => {
  it("is made once, but for customOp", () => {
    library.define("mylib::once", SAME);
    const twice = thrown(() => library.define("mylib::once", SAME));
    expect([twice.kind, twice.op]).toEqual(["InvalidOption", "mylib.once.default"]);
    expect(twice.message).toContain("same name and overload name multiple times");
    library.define("mylib::once.two", "(Tensor x, int n) -> Tensor");
    library.impl("mylib::once.two", "cpu", (x: Tensor, n: number) => x.add(n));
    expect(op("once")(tensor([1]), 2)).toEqual(tensor([3]));
    expect(thrown(() => op("once")(tensor([1]))).message).toContain("has no kernel");
    library.customOp("mylib::again", (x: Tensor) => x.add(1), { schema: SAME });
    library.customOp("mylib::again", (x: Tensor) => x.add(2), { schema: SAME });
    expect(op("again")(tensor([1]))).toEqual(tensor([3]));
    expect(thrown(() => library.define("mylib::again", SAME)).kind).toBe("InvalidOption");
    expect(thrown(() => library.define("aten::relu", "(Tensor self) -> Tensor")).kind).toBe("InvalidOption");
    const known = "quantized_decomposed::quantize_per_tensor.tensor";
    expect(thrown(() => library.define(known, SAME)).kind).toBe("InvalidOption");
    expect(thrown(() => library.impl(known, "cpu", like)).message).toContain("there is no operator");
    for (const body of [
      () => library.impl("mylib::once.two", "cpu", (x: Tensor) => x),
      () => library.impl("mylib::nowhere", "cpu", (x: Tensor) => x),
      () => library.registerFake("mylib::nowhere", (x: Tensor) => x),
      () => library.registerFake("mylib::scale", (x: Tensor) => x),
      () => library.impl("mylib::once", "cuda" as "cpu", (x: Tensor) => x),
    ]) {
      expect(thrown(body).kind).toBe("InvalidOption");
    }
  });

  it("has a name with a namespace and a schema that is one", () => {
    for (const name of ["foo", "my lib::foo", "a::b::c", "prim::foo", "torch::foo"]) {
      expect(thrown(() => library.define(name, SAME)).kind).toBe("InvalidOption");
    }
    for (const schema of [
      "",
      "Tensor x",
      "(Tensr x) -> Tensor",
      "(Tensor x)",
      "(Tensor x) -> Tensor;",
      "(x) -> Tensor",
    ]) {
      expect(thrown(() => library.define("mylib::bad", schema)).kind).toBe("SchemaMismatch");
    }
    expect(thrown(() => library.define("mylib::bad", "(Tensor x, Tensor x) -> Tensor")).message).toContain("twice");
    library.define(
      "mylib::bad",
      '(Tensor(a!)? x, Tensor[] ys, int[2] n=[1, 2], str s="a, b", *, Device? d=None) -> (Tensor[], int n)',
    );
  });

  it("that nothing was made of is not implemented", () => {
    const problem = thrown(() => torch.ops["elsewhere"]?.["foo"]?.(tensor([1])));
    expect([problem.kind, problem.op]).toEqual(["NotImplemented", "elsewhere.foo"]);
  });
});
