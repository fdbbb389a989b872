import { beforeAll, describe, expect, test } from "vitest";
import { evaluateCode } from "../../src/evaluate/evaluateCode.ts";
import { init } from "../../src/engine/engine.ts";
import { defineFunction } from "../../src/functions/table.ts";
import { tuple } from "../../src/graph/args.ts";
import { CodeGen } from "../../src/graph/codegen/codegen.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { float } from "../../src/base/values.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { PH } from "../../src/trace/placeholder.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { calls, fails, sum } from "../fx/functions.ts";
import { isForbidden } from "./forbidden.ts";
import { torch } from "../../src/torch.ts";

beforeAll(() => init());

const options = defineFunction("my.options", (...given: unknown[]) => given);

const x = tensor([1, 2], { dtype: "float32" });

class Scale extends Module {
  weight = new Parameter(tensor([2, 3], { dtype: "float32" }));
  override forward(input: Tensor): Tensor {
    return sum(input, this.weight);
  }
}

class Root extends Module {
  scale = new Scale();
}

function everything(): GraphModule {
  const graph = new Graph();
  const input = graph.placeholder("x");
  const k = graph.placeholder("k", "float", 2.5);
  const weight = graph.getAttr("scale.weight");
  const scaled = graph.callModule("scale", [input]);
  const both = graph.callFunction(sum, [scaled, weight]);
  const more = graph.callFunction(options, [[k, tuple(k, 1)], float(2)], { keep_dim: true, dtype: null });
  graph.output({ out: [graph.callMethod("to_array", [both]), more], k });
  return new GraphModule(new Root(), graph);
}

function outcome(run: () => unknown): unknown {
  try {
    return { value: run() };
  } catch (error) {
    const { name, message } = error as Error;
    return { name, message };
  }
}

/** What both ways to run a graph come to. */
function same(gm: GraphModule, ...given: unknown[]): unknown {
  const expected = outcome(() => gm.forward(...given));
  expect(outcome(() => evaluateCode(gm)(...given))).toEqual(expected);
  return expected;
}

test.runIf(isForbidden)("a host that forbids it is named, with what to do", () => {
  expect(() => evaluateCode(everything())).toThrow(
    expect.objectContaining({ kind: "NotImplemented", help: expect.stringContaining("gm.forward") }),
  );
});

describe.skipIf(isForbidden)("evaluated code", () => {
  test("gives what the interpreter gives", () => {
    const gm = everything();
    for (const given of [[x], [x, 4], [x, { k: 3 }], [x, undefined], [x, 1, 2]]) {
      expect(evaluateCode(gm)(...given)).toEqual(gm.forward(...given));
    }
  });

  test("reads results by Python's names", () => {
    const gm = symbolicTrace((input: Tensor) => {
      const { values, indices } = input.topk(2);
      return torch.add(values, indices);
    });
    const given = tensor([7, 3, 4]);
    expect((evaluateCode(gm)(given) as Tensor).toArray()).toEqual([7, 6]);
    expect((same(gm, given) as { value: Tensor }).value.toArray()).toEqual([7, 6]);
  });

  test("is evaluated again after an edit, with another graph and with another code generator", () => {
    const gm = everything();
    const run = evaluateCode(gm);
    const output = gm.graph.outputNode();
    (output as { args: unknown }).args = [1];
    expect(run(x)).toBe(1);
    using _marked = gm.graph.onGenerateCode(() => () => [{ text: "return 2;" }]);
    expect(run(x)).toBe(2);
    gm.graph.setCodegen(
      new (class extends CodeGen {
        override generateOutput(): string {
          return "return 3;";
        }
      })(),
    );
    expect(run(x)).toBe(3);
    const other = new Graph();
    other.output(4);
    gm.graph = other;
    expect(run(x)).toBe(4);
  });

  test("runs hooks of the modules that it calls", () => {
    const gm = everything();
    const seen: unknown[] = [];
    gm.getSubmodule("scale").registerForwardHook((_module, [input]) => void seen.push(input));
    evaluateCode(gm)(x);
    expect(seen.length).toBe(1);
    expect(seen[0]).toBe(x);
  });

  test("refers to values that its code generator brings along", () => {
    const graph = new Graph();
    graph.output(graph.placeholder("a"));
    class Brings extends CodeGen {
      override generateOutput(): string {
        return "return [a, $extra];";
      }
      override additionalGlobals(): Iterable<readonly [string, unknown]> {
        return [["$extra", 5]];
      }
    }
    graph.setCodegen(new Brings());
    expect(evaluateCode(new GraphModule({}, graph))(1)).toEqual([1, 5]);
  });

  test("calls functions whatever they are called", () => {
    const names = ["my.other-name", "torch.ops.my.op.default", "my.class", "operator.made_up", 'my."; x'];
    for (const name of names) {
      defineFunction(name, (it: number) => [name, it]);
      const graph = new Graph();
      graph.output(graph.callFunction(name, [1]));
      expect(evaluateCode(new GraphModule({}, graph))()).toEqual([name, 1]);
    }
  });
});

describe.skipIf(isForbidden)("CG-10: an error in evaluated code is that of the interpreter", () => {
  test("with the node and the user's line", () => {
    for (const make of [() => new RangeError("far"), () => new Error("a\nb")]) {
      const graph = new Graph();
      const a = graph.placeholder("a");
      graph.callFunction(options, [a]);
      const node = graph.callFunction(fails, [graph.callFunction(options, [a])]);
      node.args = [a];
      node.stackTrace = "at forward (model.ts:3:5)";
      graph.output(node);
      const gm = new GraphModule({}, graph);
      const [interpreted, evaluated] = [make(), make()];
      expect(() => gm.forward(interpreted)).toThrow(interpreted);
      expect(() => evaluateCode(gm)(evaluated)).toThrow(evaluated);
      expect(evaluated.message).toBe(interpreted.message);
      expect(evaluated.message).toContain("Original traceback:\nat forward (model.ts:3:5)");
    }
  });

  test("where an input is missing", () => {
    expect(same(everything())).toMatchObject({ name: "InputError" });
  });

  test("where an attribute is missing", () => {
    const gm = everything();
    gm.getSubmodule("scale").attributes.delete("weight");
    expect(same(gm, x)).toMatchObject({ message: expect.stringContaining("nonexistent target scale.weight") });
    gm.deleteSubmodule("scale");
    expect(same(gm, x)).toMatchObject({ message: expect.stringContaining("nonexistent target scale") });
  });

  test("where there is no such function", () => {
    for (const target of ["my.missing", "torch.no_such_function", "operator.no_such", "torch.ops.my.none.default"]) {
      const graph = new Graph();
      graph.output(graph.callFunction(target, [1]));
      expect(same(new GraphModule({}, graph))).toMatchObject({ name: "NotImplementedError" });
    }
  });

  test("in a graph that it calls, with both nodes", () => {
    const inner = new Graph();
    inner.output(inner.callFunction(fails, [inner.placeholder("error")]));
    const graph = new Graph();
    graph.output(graph.callModule("sub", [graph.placeholder("e")]));
    const gm = new GraphModule({ sub: new GraphModule({}, inner) }, graph);
    const [a, b] = [new Error("no"), new Error("no")];
    expect(() => gm.forward(a)).toThrow(a);
    expect(() => evaluateCode(gm)(b)).toThrow(b);
    expect(b.message).toBe(a.message);
  });

  test("after a call inside the call", () => {
    const graph = new Graph();
    const a = graph.placeholder("a");
    const first = graph.callFunction(calls, [a]);
    graph.output(graph.callFunction(options, [first]));
    const gm = new GraphModule({}, graph);
    const run = evaluateCode(gm);
    const error = new Error("late");
    const nested = (): unknown => {
      run(() => 1);
      throw error;
    };
    expect(() => run(nested)).toThrow(error);
    expect(error.message).toContain("While executing %calls :");
  });

  test("in code that a transformer made, by its lines", () => {
    const graph = new Graph();
    graph.output(graph.callFunction(fails, [graph.placeholder("a")]));
    using _marked = graph.onGenerateCode((current) => (body) => [{ text: "// first" }, ...(current?.(body) ?? body)]);
    expect(same(new GraphModule({}, graph), "no error")).toEqual({ name: undefined, message: undefined });
    const error = new Error("no");
    expect(() => evaluateCode(new GraphModule({}, graph))(error)).toThrow("While executing %fails");
  });

  test("far below the graph", () => {
    const dive = defineFunction("my.dive", (depth: number): unknown => {
      if (depth === 0) throw new Error("deep");
      return [dive(depth - 1)];
    });
    const graph = new Graph();
    graph.output(graph.callFunction(dive, [30]));
    expect(same(new GraphModule({}, graph))).toMatchObject({
      message: expect.stringContaining("While executing %dive"),
    });
  });
});

test.skipIf(isForbidden)("PT-05: evaluated code takes any number of arguments as the function that was traced", () => {
  const gm = symbolicTrace((first: Tensor, ...[second, third]: [Tensor, Tensor]) => [sum(first, second), third], {
    concreteArgs: [PH, [PH, PH]],
  });
  const given = [x, tensor([1.5, 2.5]), tensor([3])];
  expect(evaluateCode(gm)(...given)).toEqual(gm.forward(...given));
  expect(() => evaluateCode(gm)(x)).toThrow(expect.objectContaining({ kind: "InputCount" }));
});

describe.skipIf(isForbidden)("functions of one name in code", () => {
  test("are told apart by refusing", () => {
    for (const target of ["torch.made_up", "torch.madeUp"]) defineFunction(target, () => target);
    const graph = new Graph();
    graph.output([graph.callFunction("torch.made_up"), graph.callFunction("torch.madeUp")]);
    expect(() => evaluateCode(new GraphModule({}, graph))).toThrow(expect.objectContaining({ kind: "GraphArgument" }));
  });
});
