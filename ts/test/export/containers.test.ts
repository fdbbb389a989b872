/** Registered containers and dataclasses as inputs and outputs of programs. */
import { beforeAll, expect, test } from "vitest";
import {
  Dim,
  exportProgram,
  init,
  load,
  nn,
  registerDataclass,
  registerPytreeNode,
  save,
  type Tensor,
  torch,
  type TreeSpec,
} from "../../src/index.ts";
import { thrown } from "../thrown.ts";
import { open } from "./fixtures.ts";

class Point {
  readonly x: Tensor;
  readonly y: Tensor;
  readonly label: string;

  constructor(x: Tensor, y: Tensor, label: string) {
    this.x = x;
    this.y = y;
    this.label = label;
  }
}

class Out {
  readonly logits: Tensor;
  readonly extra: unknown;

  constructor(logits: Tensor, extra: unknown = null) {
    this.logits = logits;
    this.extra = extra;
  }
}

beforeAll(async () => {
  await init();
  registerPytreeNode(Point, {
    flatten: ({ x, y, label }) => [[x, y], label],
    unflatten: ([x, y], label) => new Point(x as Tensor, y as Tensor, label as string),
  });
  registerDataclass(Out, { serializedTypeName: "fixtures.FxOut" });
});

class Net extends nn.Module {
  override forward(p: Point, { out }: { readonly out: Out }): { sum: Point; out: Out } {
    const [extra] = out.extra as [Tensor];
    return { sum: new Point(p.x.mul(2).add(p.y), extra, "sum"), out: new Out(out.logits.neg()) };
  }
}

const point = (rows: number, label = "double"): Point => new Point(torch.ones([rows, 3]), torch.ones([rows, 3]), label);
const given = (): { out: Out } => ({ out: new Out(torch.ones([2]), [torch.ones([2])]) });

test("registered classes go in and come out, with dynamic sizes, saved and opened", async () => {
  const batch = Dim("batch");
  const dynamicShapes = { p: [{ 0: batch }, { 0: batch }], out: [null, [null]] };
  const program = exportProgram(new Net(), [point(2)], given(), { dynamicShapes });
  expect(program.graphSignature.userInputs).toEqual(["p_0", "p_1", "out_logits", "out_extra_0"]);
  for (const it of [program, await load(save(program)), program.relift(program.unlift())]) {
    using run = it.module();
    const { sum, out } = run(point(5), given()) as { sum: Point; out: Out };
    expect(sum).toBeInstanceOf(Point);
    expect([sum.label, sum.x.toArray()[0 as never], out.extra]).toEqual(["sum", [3, 3, 3], null]);
    expect(out).toBeInstanceOf(Out);
    expect(out.logits.toArray()).toEqual([-1, -1]);
  }
  const unlifted = program.unlift().forward(point(3), given()) as { sum: Point };
  expect(unlifted.sum).toBeInstanceOf(Point);
  expect(unlifted.sum.x.shape).toEqual([3, 3]);
});

test("another class, or another context, is refused", () => {
  using run = exportProgram(new Net(), [point(2)], given()).module();
  expect(thrown(() => run(point(2, "other"), given())).reason).toBe(
    'argument 0 should be a Point of "double" and is one of "other"',
  );
  expect(thrown(() => run({ x: torch.ones([2, 3]), y: torch.ones([2, 3]) }, given())).reason).toBe(
    "argument 0 should be a Point and is object",
  );
  expect(thrown(() => run(point(2), { out: new Out(torch.ones([2])) })).reason).toBe(
    'the keyword arguments.out should be a fixtures.FxOut of [["logits","extra"],[]] and is one of [["logits"],["extra"]]',
  );
});

/** A structure, whose contexts are JSON that Python writes with spaces. */
const parsed = (spec: TreeSpec | null): unknown =>
  spec && [spec.type, JSON.parse(spec.context ?? "null"), spec.children.map(parsed)];

test("a dataclass is written as PyTorch writes one", async () => {
  const recorded = await open("dataclass_io");
  class Same extends nn.Module {
    override forward(inp: Out): Out {
      return new Out(inp.logits.relu(), [inp.extra]);
    }
  }
  const program = exportProgram(new Same(), [new Out(torch.ones([2, 3]), torch.ones([2]))]);
  expect(parsed(program.callSpec.inSpec)).toEqual(parsed(recorded.callSpec.inSpec));
  expect(parsed(program.callSpec.outSpec)).toEqual(parsed(recorded.callSpec.outSpec));
  expect(program.graphSignature.userInputs).toEqual(recorded.graphSignature.userInputs);
  // A program of PyTorch gives instances of the registered class.
  const [args] = recorded.exampleInputs ?? [[]];
  expect(args[0]).toBeInstanceOf(Out);
  expect(recorded.module()(...args)).toBeInstanceOf(Out);
});
