/** Preserved signatures and contexts, as PyTorch exports them: `tests/oracle/gen_export_calls.py` recorded what it makes. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Argument,
  cond,
  Dim,
  exportProgram,
  type ExportedProgram,
  GraphModule,
  init,
  load,
  nn,
  save,
  map,
  type Tensor,
  tensor,
  TensorMeta,
  torch,
  tuple,
  type TreeSpec,
  unflatten,
} from "../../src/index.ts";
import { treeFlatten } from "../../src/trace/pytree.ts";
import { thrown } from "../thrown.ts";
import { CALLS, OutArguments } from "./calls.ts";

interface RecordedCall {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly in_spec: string;
  readonly out_spec: string;
}

interface Recorded {
  readonly name: string;
  readonly graph: string;
  readonly graphs: Readonly<Record<string, string>>;
  readonly modules: readonly string[];
  readonly preserved: readonly string[];
  readonly calls: Readonly<Record<string, RecordedCall>>;
  readonly dtypes: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const file = new URL("../../../tests/fixtures/export/calls.jsonl", import.meta.url);
const recorded = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded)
  .filter(({ name }) => name in CALLS);

beforeAll(async () => void (await init()));

function exported({ name, preserved }: Recorded, given: Tensor = torch.zeros(2, 4)): [nn.Module, ExportedProgram] {
  const module = (CALLS[name] as () => nn.Module)();
  const program = exportProgram(module, [given], {}, { preserveModuleCallSignature: preserved });
  torch.setGradEnabled(true);
  return [module, program];
}

/** Python's `repr` of a structure, on one line. */
function specText({ type, context, children }: TreeSpec): string {
  if (type === undefined) return "*";
  const inner = children.map(specText).join(",");
  const keys = context === "null" ? "None" : (context ?? "").replaceAll('"', "'").replaceAll(",", ", ");
  return `TreeSpec(${type.replace("builtins.", "")}, ${keys}, [${inner}])`;
}

function argumentText(it: Argument): string {
  if (it.type !== "constant") return `TensorArgument(name='${it.name}')`;
  const value = it.value.type === "None" ? "None" : it.value.value;
  return `ConstantArgument(name='', value=${value === true ? "True" : String(value)})`;
}

describe("EP: signatures of calls and contexts are those of PyTorch", () => {
  test.each(recorded)("$name", (it) => {
    const [, program] = exported(it);
    expect(`${program.graph}`).toBe(it.graph);
    const inner = [...program.graphModule.namedModules()].flatMap(([path, module]) =>
      path !== "" && module instanceof GraphModule ? [[path, `${module.graph}`] as const] : [],
    );
    expect(Object.fromEntries(inner)).toEqual(it.graphs);
    expect(program.moduleCallGraph.map(({ fqn }) => fqn)).toEqual(it.modules);
    const calls = program.moduleCallGraph.flatMap(({ fqn, signature }) =>
      fqn === "" || signature === undefined
        ? []
        : [
            [
              fqn,
              {
                inputs: signature.inputs.map(argumentText),
                outputs: signature.outputs.map(argumentText),
                in_spec: specText(signature.inSpec),
                out_spec: specText(signature.outSpec),
              },
            ] as const,
          ],
    );
    expect(Object.fromEntries(calls)).toEqual(it.calls);
    program.validate();
  });

  test.each(recorded)("$name gives what its module gives, decomposed, saved and unflattened too", async (it) => {
    const input = torch.rand(2, 4);
    const [module, program] = exported(it, input);
    const saved = await load(save(program));
    expect(saved.moduleCallGraph).toEqual(program.moduleCallGraph);
    const runs: readonly ((x: Tensor) => unknown)[] = [
      program.module(),
      program.runDecompositions().module(),
      saved.module(),
      (given) => unflatten(program).forward(given),
      (given) => unflatten(saved).forward(given),
    ];
    const results = runs.map((run) => treeFlatten(run(input.clone()))[0] as Tensor[]);
    const want = treeFlatten(module.call(input.clone()))[0] as Tensor[];
    torch.setGradEnabled(true);
    for (const [run, got] of results.entries()) {
      for (const [at, value] of want.entries()) {
        const close = got[at]?.dtype === value.dtype && torch.allclose(got[at], value, { rtol: 1e-5, atol: 1e-5 });
        expect(close, `run ${run}, output ${at}`).toBe(true);
      }
    }
  });
});

/** The dtypes of all tensors, by the path of their graph and the name of their node. */
function dtypesIn(root: GraphModule): Record<string, Record<string, string>> {
  const graphs = [...root.namedModules()].filter((it): it is [string, GraphModule] => it[1] instanceof GraphModule);
  return Object.fromEntries(graphs.map(([path, module]) => [path, Object.fromEntries(dtypesOf(module))]));
}

function dtypesOf({ graph }: GraphModule): [string, string][] {
  return [...graph.nodes].flatMap(({ name, meta }) => {
    const val = meta.get("val");
    return val instanceof TensorMeta ? [[name, val.dtype]] : [];
  });
}

/** The dtypes of the last three tensors of the outermost graph. */
function lastDtypes({ graphModule }: ExportedProgram): string[] {
  return Object.values(dtypesIn(graphModule)[""] as Record<string, string>).slice(-3);
}

describe("EP: dtypes are those of PyTorch, and those of a run", () => {
  test.each(recorded)("$name", (it) => {
    const [, program] = exported(it);
    expect(dtypesIn(program.graphModule)).toEqual(it.dtypes);
  });

  test("composed operators under autocast have them in dynamic sizes, decomposed and loaded again, too", async () => {
    class Products extends nn.Module {
      w = new nn.Parameter(torch.randn(4, 4));

      override forward(given: Tensor): unknown {
        return torch.autocast("cpu", () => {
          const a = torch.einsum("bi,ij->bj", given, this.w);
          return tuple(a, torch.einsum("bi,bj->bij", given, given), torch.linalg.multiDot([given, this.w, this.w]));
        });
      }
    }
    const program = exportProgram(new Products(), [torch.rand(2, 4)], {}, { dynamicShapes: [{ 0: Dim("n") }] });
    const want = ["bfloat16", "float32", "bfloat16"];
    const again = await load(save(program));
    expect([lastDtypes(program), lastDtypes(again)]).toEqual([want, want]);
    for (const it of [program, again, program.runDecompositions()]) {
      using run = it.module();
      expect((run(torch.rand(5, 4)) as Tensor[]).map(({ dtype }) => dtype)).toEqual(want);
    }
  });
});

describe("control flow and autocast", () => {
  class Within extends nn.Module {
    w = new nn.Parameter(torch.randn(4, 4));

    override forward(given: Tensor): unknown {
      const [y, rows] = torch.autocast("cpu", () => {
        const chosen = cond(
          given.sum().gt(0),
          (it: Tensor) => it.matmul(this.w),
          (it: Tensor) => torch.einsum("ij,jk->ik", it, this.w).add(1),
          [given],
        );
        return [chosen, map((row: Tensor) => row.matmul(this.w), given)] as const;
      });
      return tuple(y, rows, y.float().add(1));
    }
  }

  class Around extends nn.Module {
    w = new nn.Parameter(torch.randn(4, 4));

    override forward(given: Tensor): Tensor {
      return cond(
        given.sum().gt(0),
        (it: Tensor) => torch.autocast("cpu", () => it.matmul(this.w)).float(),
        (it: Tensor) => torch.autocast("cpu", () => torch.autocast("cpu", { enabled: false }, () => it.matmul(this.w))),
        [given],
      );
    }
  }

  test.each([
    ["within autocast", () => new Within(), ["bfloat16", "bfloat16", "float32"]],
    ["autocast in a branch", () => new Around(), ["float32"]],
  ] as const)("%s", async (_name, make, want) => {
    const module = make();
    const program = exportProgram(module, [torch.rand(3, 4)]);
    const text = `${program.graphModule.printReadable()}`;
    expect(text).toContain("wrap_with_autocast");
    expect(text).not.toContain("_enter_autocast");
    const again = await load(save(program));
    for (const it of [program, again, program.runDecompositions()]) {
      using run = it.module();
      for (const given of [torch.rand(3, 4), torch.rand(3, 4).neg()]) {
        const got = treeFlatten(run(given))[0] as Tensor[];
        const wanted = treeFlatten(module.call(given))[0] as Tensor[];
        expect(got.map(({ dtype }) => dtype)).toEqual(want);
        for (const [at, value] of wanted.entries()) expect(torch.equal(got[at] as Tensor, value), `${at}`).toBe(true);
      }
    }
  });
});

const x = (): Tensor => torch.zeros(2, 4);
const preserving = (...paths: string[]) => ({ preserveModuleCallSignature: paths });

describe("preserveModuleCallSignature", () => {
  test("a module of an unflattened program is replaced by one that is called in the same way", () => {
    const program = exported(recorded.find(({ name }) => name === "preserved_containers") as Recorded)[1];
    const model = unflatten(program);
    class Other extends nn.Module {
      override forward(given: Tensor, ys: Tensor[], { other }: { other: Tensor }): unknown {
        return { a: given.add(ys[0] as Tensor), b: [other, given] };
      }
    }
    model.graphModule.addSubmodule("leaf", new Other());
    const [, second] = model.forward(x().add(3)) as [Tensor, Tensor];
    expect(second.toArray()).toEqual(x().add(3).toArray());
  });

  test("a module that is not there is refused by its name, and so is the root", () => {
    const module = new nn.Linear(4, 4);
    expect(thrown(() => exportProgram(module, [x()], {}, preserving("no"))).message).toContain("no");
    expect(thrown(() => exportProgram(module, [x()], {}, preserving(""))).message).toContain("path must not be empty");
  });

  test("an object that forward does not take apart is an argument", () => {
    class Inner extends nn.Module {
      override forward(parts: { a: Tensor; b: Tensor }): Tensor {
        return parts.a.sub(parts.b);
      }
    }
    class Outer extends nn.Module {
      inner = new Inner();

      override forward(a: Tensor): Tensor {
        return this.inner.forward({ a, b: a.sin() });
      }
    }
    const program = exportProgram(new Outer(), [x()], {}, preserving("inner"));
    const [args, kwargs] = program.moduleCallGraph.find(({ fqn }) => fqn === "inner")?.signature?.inSpec.children ?? [];
    expect([args?.children.map((it) => it.context), kwargs?.children]).toEqual([['["a","b"]'], []]);
  });

  test("a module that is called in two ways is refused", () => {
    class Inner extends nn.Module {
      override forward(a: Tensor, b?: Tensor): Tensor {
        return b === undefined ? a : a.add(b);
      }
    }
    class Outer extends nn.Module {
      inner = new Inner();

      override forward(a: Tensor): Tensor {
        return this.inner.forward(this.inner.forward(a), a);
      }
    }
    const { code, message } = thrown(() => exportProgram(new Outer(), [x()], {}, preserving("inner")));
    expect([code, message]).toEqual(["FX0401", expect.stringContaining("mismatch for inner")]);
  });
});

describe("contexts", () => {
  test("hold while their function runs, or until they are disposed of", () => {
    expect(torch.noGrad(() => torch.isGradEnabled())).toBe(false);
    expect(torch.noGrad(() => torch.enableGrad(() => torch.isGradEnabled()))).toBe(true);
    {
      using _off = torch.setGradEnabled(false);
      expect(torch.isGradEnabled()).toBe(false);
    }
    expect(torch.isGradEnabled()).toBe(true);
    expect(() =>
      torch.noGrad(() => {
        throw new RangeError("inside");
      }),
    ).toThrow(RangeError);
    expect(torch.isGradEnabled()).toBe(true);
    expect(torch.autocast("cpu", () => [torch.isAutocastEnabled("cpu"), torch.getAutocastDtype("cpu").name])).toEqual([
      true,
      "bfloat16",
    ]);
    expect(torch.isAutocastEnabled("cpu")).toBe(false);
  });

  test("what runs in them is synchronous", () => {
    expect(thrown(() => torch.noGrad(async () => {})).message).toContain("synchronous");
    expect(torch.isGradEnabled()).toBe(true);
  });

  test("autocast casts eager operators, those that are composed of others too", () => {
    const a = torch.rand(3, 3);
    torch.autocast("cpu", { dtype: "float16" }, () => {
      expect([a.matmul(a).dtype, torch.einsum("ij,jk->ik", a, a).dtype]).toEqual(["float16", "float16"]);
      const product = a.matmul(a);
      expect([product.softmax(0).dtype, a.add(a).dtype]).toEqual(["float16", "float32"]);
      expect(new nn.MSELoss().forward(product, product).dtype).toBe("float32");
      // What these take is converted on the way to the operator.
      expect([a.to("float64").dtype, a.view(9, 1).shape, torch.ones([2], { dtype: "float64" }).dtype]).toEqual([
        "float64",
        [9, 1],
        "float64",
      ]);
      expect(torch.softmax(a, 1, { dtype: "float64" }).dtype).toBe("float64");
      expect(new nn.LSTM(3, 2).forward(a)[0].shape).toEqual([3, 2]);
    });
    expect(a.matmul(a).dtype).toBe("float32");
    expect(thrown(() => torch.autocast("cpu", { dtype: "float64" }, () => a)).message).toContain("not supported");
  });
});

describe("out=", () => {
  test("is written to by a copy, and is what comes back", () => {
    const inputs = [torch.rand(2, 4), torch.rand(2, 4)];
    const program = exportProgram(new OutArguments(), inputs);
    const targets = [...program.graph.nodes].map((it) => it.target.split(".").at(-2));
    expect(targets.filter((it) => it === "copy_").length).toBe(4);
    const want = new OutArguments().call(...inputs) as Tensor[];
    for (const it of [program, program.runDecompositions()]) {
      const got = it.module()(...inputs) as Tensor[];
      for (const [at, value] of want.entries()) expect(torch.equal(got[at] as Tensor, value)).toBe(true);
    }
  });

  test("of a dtype that would lose the fraction is refused, as PyTorch refuses it", () => {
    class Whole extends nn.Module {
      override forward(given: Tensor): Tensor {
        return torch.add(given, 1, { out: torch.zerosLike(given, { dtype: "int64" }) });
      }
    }
    const { kind, reason } = thrown(() => exportProgram(new Whole(), [x()]));
    expect([kind, reason]).toEqual([
      "DTypeMismatch",
      "result type float32 can't be cast to the desired output type int64",
    ]);
  });

  test("of sums is computed in its dtype", () => {
    class Product extends nn.Module {
      override forward(given: Tensor): Tensor {
        return torch.prod(given, 0, { out: torch.empty([], { dtype: "float64" }) });
      }
    }
    const given = tensor([3, 2e9, 2e9, 7], { dtype: "int32" });
    const program = exportProgram(new Product(), [given]);
    expect((program.module()(given) as Tensor).item()).toBe(8.4e19);
    expect((new Product().call(given) as Tensor).item()).toBe(8.4e19);
  });

  test("of dynamic sizes is written to", () => {
    class Like extends nn.Module {
      override forward(given: Tensor): Tensor {
        return torch.add(given, 1, { out: torch.emptyLike(given) });
      }
    }
    const program = exportProgram(new Like(), [torch.rand(3, 4)], {}, { dynamicShapes: [{ 0: Dim("n") }] });
    using run = program.module();
    const given = torch.rand(5, 4);
    expect(torch.equal(run(given) as Tensor, given.add(1))).toBe(true);
  });

  test("of other sizes is refused", () => {
    class Wide extends nn.Module {
      override forward(given: Tensor): Tensor {
        return torch.add(given, 1, { out: torch.empty(3) });
      }
    }
    const { kind, reason } = thrown(() => exportProgram(new Wide(), [x()]));
    expect([kind, reason]).toEqual([
      "NotImplemented",
      "aten.add with `out` of other sizes than the result is not exported",
    ]);
  });
});
