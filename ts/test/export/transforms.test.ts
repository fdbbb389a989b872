/**
 * What transforms of functions, tables of decompositions and drafts of exports refuse, or do as PyTorch 2.13 does, where a trace could
 * give another number.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { beforeAll, describe, expect, test } from "vitest";
import {
  CustomDecompTable,
  cond,
  decompose,
  DecompositionInterpreter,
  draftExport,
  exportProgram,
  F,
  func,
  getIsolatedGraphmodule,
  Graph,
  GraphModule,
  guard,
  guardOrFalse,
  init,
  makeFx,
  Module,
  nn,
  operator,
  packagePt2,
  loadPt2,
  PT2ArchiveWriter,
  type Size,
  staticallyKnownTrue,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";

/** A complex64 tensor of these parts. */
function complexOf(real: number[], imag: number[]): Tensor {
  return torch.complex(tensor(real, { dtype: "float32" }), tensor(imag, { dtype: "float32" }));
}

beforeAll(() => init());

const ones = (...sizes: number[]): Tensor => torch.ones(sizes);

/** A module of a function; a copy of it is one, too. */
function doing(body: (x: Tensor) => Tensor): Module {
  class Doing extends Module {
    override forward(x: Tensor): Tensor {
      return body(x);
    }
  }
  return new Doing();
}

describe("makeFx", () => {
  test("normalizations in training give their result, and update their statistics", () => {
    for (const make of [
      () => new nn.BatchNorm1d(2),
      () => new nn.InstanceNorm1d(2, { affine: true, trackRunningStats: true }),
    ]) {
      const [theirs, ours] = [make(), make()];
      const x = torch.arange(12, { dtype: "float32" }).reshape([2, 2, 3]);
      const gm = makeFx((it: Tensor) => ours.call(it) as Tensor)(x);
      expect(String(gm.call(x))).toBe(String(theirs.call(x)));
      expect(String(ours.running_mean)).toBe(String(theirs.running_mean));
    }
  });

  test("tables that are none, or never end, are refused", () => {
    const table = new CustomDecompTable() as never;
    expect(() => makeFx((x: Tensor) => x.sin(), { decompositionTable: table })).toThrow("a Map or an object by name");
    const decompositionTable = { "torch.ops.aten.sin.default": (x: Tensor) => x.sin() };
    expect(() => makeFx((x: Tensor) => x.sin(), { decompositionTable })(ones(2))).toThrow("calls itself");
  });

  test("constants that a decomposition brings do not take the names of the module's", () => {
    const [held, brought] = [tensor([1.5, 2]), tensor([10.5, 20])];
    const gm = makeFx((x: Tensor) => x.add(held).sin())(ones(2));
    const graph = new Graph();
    const decompositionTable = { "torch.ops.aten.sin.default": (x: Tensor) => x.mul(brought) };
    new DecompositionInterpreter(gm, graph, { decompositionTable }).run(ones(2));
    expect(String(new GraphModule(gm, graph).call(ones(2)))).toBe(String(ones(2).add(held).mul(brought)));
  });

  test("a number that was written to is no longer what the source says", () => {
    const f = (x: Tensor): Tensor => {
      const k = tensor(1.5);
      k.add_(1);
      return x.mul(k.item() as number);
    };
    expect(() => makeFx(f)(ones(2))).toThrow("get value out of a tracing tensor");
    expect(() => makeFx(() => decompose({}, () => tensor(1.5).view(1).item()))()).toThrow("get value out");
  });
});

describe("functions that decide on values", () => {
  const f = (x: Tensor): Tensor => (x.sum().gt(0) ? x.sin().sum() : x.mul(5).sum());
  const x = (): Tensor => tensor([-1.5, -2]);
  test("are refused by all transforms", () => {
    const said = "asks whether a traced value is true";
    expect(() => func.grad(f)(x())).toThrow(said);
    expect(() => func.grad(func.grad(f))(x())).toThrow(said);
    expect(() => func.vjp(f as never, [x()])).toThrow(said);
    expect(() => func.vmap(f)(x().reshape([1, 2]))).toThrow(said);
    expect(() => func.jacrev((_: Tensor, it: Tensor) => f(it).mul(it.sum() ? 1 : 2), { argnums: 1 })(x(), x())).toThrow(
      said,
    );
    expect(() => getIsolatedGraphmodule(f as never, [x()])).toThrow(said);
    expect(() => func.grad((p: { a: Tensor }) => (p.a.sum() ? p.a.sum() : p.a.sin().sum()))({ a: x() })).toThrow(said);
    const table = new CustomDecompTable();
    table.set("torch.ops.aten.silu.default", (it: Tensor) => (it.sum().gt(0) ? it.sin() : it));
    expect(() =>
      table.decompose(
        exportProgram(
          doing((it) => F.silu(it)),
          [x()],
        ),
      ),
    ).toThrow(said);
  });
});

describe("gradients", () => {
  test("writes that would be lost are refused", () => {
    const w = ones(2);
    expect(() => func.grad((x: Tensor) => x.mul_(2).sum())(ones(2))).toThrow("a leaf Variable that requires grad");
    expect(() => func.grad((x: Tensor) => w.mul_(x).sum())(ones(2))).toThrow("would mutate a captured Tensor");
    expect(() => func.grad((x: Tensor, y: Tensor) => y.mul_(2).mul(x).sum())(ones(2), w)).toThrow(
      "writes to its arguments",
    );
    expect(String(func.grad((x: Tensor) => x.clone().mul_(2).sum())(ones(2)))).toBe("tensor([2., 2.])");
    expect(String(w)).toBe("tensor([1., 1.])");
  });

  test("what is pulled back may lie in memory otherwise than the result", () => {
    const x = torch.arange(6, { dtype: "float32" });
    const given = torch.arange(6, { dtype: "float32" });
    const pulled = (f: (x: Tensor) => Tensor, cotangent: Tensor): number[] =>
      ((func.vjp(f, [x])[1](cotangent) as Tensor[])[0] as Tensor).tolist() as number[];
    expect(pulled((it) => it.view([2, 3]).t(), given.view([3, 2]))).toEqual([0, 2, 4, 1, 3, 5]);
    expect(pulled((it) => it.view([2, 3]), given.view([3, 2]).t())).toEqual([0, 2, 4, 1, 3, 5]);
    expect(pulled((it) => it.view([2, 3]), torch.ones([1, 1]).expand([2, 3]))).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test("bilinear functions of no rows change by nothing", () => {
    const [a, b, w] = [torch.zeros([0, 3]), torch.zeros([0, 4]), ones(5, 3, 4)];
    const f = (...args: Tensor[]): Tensor => F.bilinear(args[0] as Tensor, args[1] as Tensor, args[2] as Tensor);
    expect((func.jvp(f, [a, b, w], [a, b, w])[1] as Tensor).shape).toEqual([0, 5]);
  });

  test("changes go through logarithms of sums", () => {
    const x = tensor([1, 2, 3], { dtype: "float64" });
    const change = func.jvp((it: Tensor) => torch.logcumsumexp(it, 0), [x], [torch.onesLike(x)])[1] as Tensor;
    expect(change.allclose(torch.onesLike(x))).toBe(true);
  });

  test("dtypes without gradients are refused", () => {
    const whole = torch.ones([2], { dtype: "int64" });
    expect(() => func.vjp(((x: Tensor) => x.to("int64")) as never, [ones(2)])).toThrow(
      "must be floating-point or complex",
    );
    expect(() => func.jvp(torch.sin as never, [ones(2)], [whole])).toThrow("Expected tangent to be floating point");
    expect(() => func.jvp(torch.sin as never, [ones(2)], [1])).toThrow("Expected tangents to only contain Tensors");
  });

  test("gradients of complex numbers are conjugates of derivatives, as PyTorch gives them", () => {
    const [x, z] = [tensor([1, 2], { dtype: "float32" }), complexOf([1, -0.5], [2, 1])];
    const weight = complexOf([1, 0], [1, 2]);
    const square = (it: Tensor): Tensor => it.mul(it);
    const modulus = (it: Tensor): Tensor => it.conj().mul(it);
    const text = (it: unknown): string => (Array.isArray(it) ? it.map(String).join(" ") : String(it));
    const abs = (it: Tensor): Tensor => it.abs().pow(2).sum();
    expect(text(func.grad(abs)(z))).toBe("tensor([ 2.+4.j, -1.+2.j])");
    expect(text(func.vjp(square as never, [z])[1](weight))).toBe("tensor([6.-2.j, 4.-2.j])");
    expect(text(func.jvp(square as never, [z], [weight])[1])).toBe("tensor([-2.+6.j, -4.-2.j])");
    expect(text(func.jvp(modulus as never, [z], [weight])[1])).toBe("tensor([6.+0.j, 4.+0.j])");
    expect(text(func.jvp(square as never, [z], [x])[1])).toBe("tensor([ 2.+4.j, -2.+4.j])");
    const mixed = func.vjp(((a: Tensor, b: Tensor) => [a.mul(b), a.to("float64").sum()]) as never, [x, z])[1];
    expect(text(mixed([weight, tensor(3, { dtype: "float64" })]))).toBe("tensor([6., 5.]) tensor([1.+1.j, 0.+4.j])");
    const cube = func.grad((it: Tensor) => it.abs().pow(3).sum());
    expect(text(func.grad((it: Tensor) => (cube(torch.complex(it, it)) as Tensor).abs().sum())(x))).toBe(
      "tensor([12.0000, 24.0000])",
    );
  });

  test("complex numbers are refused where PyTorch refuses them", () => {
    const [x, z] = [ones(2), complexOf([1, -0.5], [2, 1])];
    const square = (it: Tensor): Tensor => it.mul(it);
    expect(() => func.grad((it: Tensor) => square(it).sum())(z)).toThrow(
      "grad can be implicitly created only for real scalar outputs but got torch.complex64",
    );
    expect(() => func.vjp(square as never, [z])[1](x)).toThrow("required to have the same dtype. Mismatch in dtype");
    expect(() => func.vjp(square as never, [x])[1](z)).toThrow("required to have the same dtype. Mismatch in dtype");
    expect(() => func.jacrev(square)(z)).toThrow("jacrev: Expected all inputs to be real");
    expect(() => func.jacfwd((it: Tensor) => torch.complex(it, it))(x)).toThrow(
      "jacfwd: Expected all outputs to be real",
    );
  });

  test("Jacobians of empty tensors, and of arguments from the end", () => {
    const product = (x: Tensor, y: Tensor): Tensor => x.mul(y);
    expect((func.jacrev(torch.sin as never) as (x: Tensor) => Tensor)(ones(0)).shape).toEqual([0, 0]);
    expect((func.jacfwd(torch.sin as never) as (x: Tensor) => Tensor)(ones(0)).shape).toEqual([0, 0]);
    expect(String(func.jacrev(product, { argnums: -1 })(tensor([2.5]), tensor([3.5])))).toBe("tensor([[2.5000]])");
    expect(() => (func.jacrev(((x: Tensor) => [x, x]) as never) as (x: Tensor) => unknown)(ones(2))).toThrow(
      "result is no tensor",
    );
    expect(() => func.grad((x: Tensor) => x.sum(), { argnums: [0, 0] })(ones(2))).toThrow("must be unique");
  });
});

describe("vmap", () => {
  test("counts offsets into memory from each example on", () => {
    const rows = torch.arange(6).reshape([2, 3]);
    const ends = func.vmap((it: Tensor) => it.asStrided([2], [1], 1))(rows) as Tensor;
    expect(ends.toArray()).toEqual([
      [1, 2],
      [4, 5],
    ]);
  });

  test("counts strides in memory as all examples lie in it", () => {
    const matrix = torch.arange(12).reshape([3, 4]);
    const below = func.vmap((it: Tensor) => it.asStrided([2], [4]), { inDims: 1 })(matrix) as Tensor;
    expect(below.toArray()).toEqual([
      [0, 4],
      [1, 5],
      [2, 6],
      [3, 7],
    ]);
    const [first, second] = [null, 4].map((offset) =>
      (func.vmap((it: Tensor) => it.asStrided([2], [1], offset))(matrix.narrow(0, 1, 2)) as Tensor).toArray(),
    );
    expect([first, second]).toEqual([
      [
        [4, 5],
        [8, 9],
      ],
      [
        [4, 5],
        [8, 9],
      ],
    ]);
    const writes = (it: Tensor): Tensor => it.add_(1).asStrided([2], [1]);
    expect(() => func.vmap(writes)(matrix)).toThrow("writes to its argument, and views memory by as_strided");
  });

  test("draws nothing where everything is dropped", () => {
    const dropped = func.vmap((it: Tensor) => F.dropout(it, 1))(ones(3)) as Tensor;
    expect(dropped.toArray()).toEqual([0, 0, 0]);
    expect(() => func.vmap((it: Tensor) => F.dropout(it, 0.5))(ones(3))).toThrow("called random operation");
  });

  test("examples without dimensions count as such for dtypes", () => {
    const double = torch.ones([3], { dtype: "float64" });
    const half = torch.ones([2, 2], { dtype: "float16" });
    const sum = (a: Tensor, b: Tensor): Tensor => a.add(b);
    expect((func.vmap(sum, { inDims: [0, null] })(double, ones(2)) as Tensor).dtype).toBe("float32");
    expect((func.vmap(sum)(ones(2), half) as Tensor).dtype).toBe("float16");
  });

  test("options are PyTorch's, or are refused", () => {
    const [x, w] = [ones(3, 2), ones(2)];
    const same = (it: Tensor): Tensor => it;
    expect(() => func.vmap(same, { outDims: null })(x)).toThrow("can not return a BatchedTensor when out_dim is None");
    expect(String((func.vmap(() => w, { outDims: null }) as (it: Tensor) => unknown)(x))).toBe("tensor([1., 1.])");
    expect(() => func.vmap(same, { inDims: [null] })(x)).toThrow("Expected at least one Tensor to vmap over");
    expect(() => func.vmap(same, { chunkSize: 0 })(x)).toThrow("chunk_size should be None or greater than 0. (got 0)");
    expect(() => func.vmap(same, { randomness: "same" as never })(x)).toThrow("the same random numbers");
    expect(() => func.vmap((it: Tensor) => it.clone().uniform_())(x)).toThrow("called random operation");
    expect(() => func.vmap((it: Tensor) => w.add_(it))(x)).toThrow("which all examples share");
    expect((func.vmap((it: Tensor) => it.sum())(ones(0, 3)) as Tensor).shape).toEqual([0]);
  });

  test("symbolic sizes are refused by name", () => {
    const options = { tracingMode: "symbolic" } as const;
    const f = (x: Tensor): unknown => func.vmap((it: Tensor) => it.sum())(x);
    expect(() => makeFx(f, options)(ones(3, 2))).toThrow("sizes that are symbolic");
  });
});

describe("CustomDecompTable", () => {
  const decomposed = (table: CustomDecompTable, f: (x: Tensor) => Tensor) =>
    table.decompose(exportProgram(doing(f), [ones(2, 2)]));
  test("results of another structure are refused", () => {
    const table = new CustomDecompTable();
    table.set("torch.ops.aten.silu.default", (x: Tensor) => [x, x]);
    expect(() => decomposed(table, (x) => F.silu(x))).toThrow("silu.default gives an array");
  });

  test("graphs of control flow are refused", () => {
    const table = new CustomDecompTable();
    table.set("torch.ops.aten.silu.default", (x: Tensor) => x.sin());
    const branches = (x: Tensor): Tensor =>
      cond(
        x.sum().gt(0),
        (it: Tensor) => F.silu(it),
        (it: Tensor) => it.cos(),
        [x],
      ) as Tensor;
    expect(() => decomposed(table, branches)).toThrow("silu.default within");
  });
});

describe("draftExport", () => {
  const item = (x: Tensor): Size => x.item() as unknown as Size;
  test("what is not to be decided by data is not", () => {
    const { program, report } = draftExport(
      doing((x) => (guardOrFalse(operator.gt(item(x), 3) as never) ? x.sin() : x.cos())),
      [tensor(5)],
      {},
      { checkSources: false },
    );
    expect(report.failures).toEqual([]);
    expect(String(program.graph)).toContain("aten.cos");
    const known = draftExport(
      doing((x) => {
        const n = item(x);
        torch._check(operator.gt(n, 3) as never);
        return staticallyKnownTrue(operator.gt(n, 2) as never) ? x.sin() : x.cos();
      }),
      [tensor(5)],
      {},
      { checkSources: false },
    );
    expect(String(known.program.graph)).toContain("aten.sin");
  });

  test("the element of a view is not known behind a write", () => {
    const read = (of: (base: Tensor, view: Tensor) => Tensor) => () =>
      draftExport(
        doing((x) => {
          const base = x.clone();
          const view = base.view(1);
          base.add_(1);
          return guard(operator.gt(item(of(base, view)), 5) as never) ? x.sin() : x.cos();
        }),
        [tensor([5])],
        {},
        { checkSources: false },
      ).report.failures.map((it) => it.data.result);
    expect(read((base) => base)()).toEqual(["True"]);
    expect(read((_, view) => view)).toThrow("data-dependent");
  });
});

test("behind control flow a draft does not know the data", () => {
  const f = (x: Tensor): Tensor => {
    const y = cond(
      x.gt(0),
      (it: Tensor) => it.sum().add(1),
      (it: Tensor) => it.sum().add(2).add(3),
      [x],
    ) as Tensor;
    return guard(operator.gt(y.add(1).item() as never, 5) as never) ? x.sin() : x.cos();
  };
  expect(() => draftExport(doing(f), [tensor(5)], {}, { checkSources: false })).toThrow("data-dependent");
});

describe("archives", () => {
  test("names are taken as they are, and what is too much is refused", () => {
    const program = exportProgram(
      doing((x) => x.sin()),
      [ones(2)],
    );
    expect([...loadPt2(packagePt2({ "a$&b": program })).exportedPrograms.keys()]).toEqual(["a$&b"]);
    expect(() => packagePt2({})).toThrow("one program at least");
    const writer = new PT2ArchiveWriter();
    for (let at = 0; at < 65_536; at++) writer.writeBytes(`${at}`, new Uint8Array());
    expect(() => writer.close()).toThrow("65535 entries at most");
  });
});
