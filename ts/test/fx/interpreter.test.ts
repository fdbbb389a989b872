import { describe, expect, test } from "vitest";
import { type FxError, fxError, GraphError } from "../../src/base/errors.ts";
import { slice, tuple } from "../../src/graph/args.ts";
import { CodeGen } from "../../src/graph/codegen/codegen.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import type { Node } from "../../src/graph/node.ts";
import { Slice, ValueTuple } from "../../src/base/values.ts";
import { Interpreter } from "../../src/fx/interpreter.ts";
import { Transformer } from "../../src/trace/transformer.ts";
import { Module } from "../../src/nn/module.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { calls, fails, plusOne, sum } from "./functions.ts";

const x = tensor([1, 2], { dtype: "float32" });

/** x + 1, and that with x again. */
function chain(): { gm: GraphModule; nodes: Record<string, Node> } {
  const graph = new Graph();
  const input = graph.placeholder("x");
  const one = graph.callFunction(plusOne, [input]);
  const two = graph.callFunction(plusOne, [one]);
  const both = graph.callFunction(sum, [two, input]);
  const output = graph.output(both);
  return { gm: new GraphModule({}, graph), nodes: { input, one, two, both, output } };
}

function numbers(value: unknown): unknown {
  return (value as Tensor).toArray();
}

function names(env: ReadonlyMap<Node, unknown>): string[] {
  return Array.from(env.keys(), (it) => it.name);
}

/** A module that gives its inputs. */
function inputsOf(...targets: string[]): GraphModule {
  const graph = new Graph();
  graph.output(targets.map((it) => graph.placeholder(it)));
  return new GraphModule({}, graph);
}

/** Runs a node that throws. */
function failing(error: unknown, stackTrace?: string): () => unknown {
  const graph = new Graph();
  const node = graph.callFunction(fails, [graph.placeholder("error")]);
  node.stackTrace = stackTrace;
  graph.output(node);
  return () => new Interpreter(new GraphModule({}, graph)).run(error);
}

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("IN-02, IN-03: values", () => {
  test("are forgotten after their last use, and at the end only the output is known", () => {
    const { gm } = chain();
    const known: string[][] = [];
    class Watch extends Interpreter {
      override runNode(node: Node): unknown {
        known.push(names(this.env));
        return super.runNode(node);
      }
    }
    const interpreter = new Watch(gm);
    expect(numbers(interpreter.run(x))).toEqual([4, 6]);
    expect(known).toEqual([[], ["x"], ["x", "plus_one"], ["x", "plus_one_1"], ["sum_1"]]);
    expect(names(interpreter.env)).toEqual(["output"]);
  });

  test("that nothing uses are forgotten at once", () => {
    const { gm, nodes } = chain();
    gm.graph.insertingBefore(nodes["output"], () => gm.graph.callFunction(plusOne, [nodes["both"] as Node]));
    gm.graph.insertingBefore(nodes["input"], () => gm.graph.placeholder("unused"));
    const interpreter = new Interpreter(gm);
    interpreter.run(null, x);
    expect(names(interpreter.env)).toEqual(["output"]);
  });

  test("are all kept on request", () => {
    const interpreter = new Interpreter(chain().gm, { garbageCollectValues: false });
    interpreter.run(x);
    expect(Array.from(interpreter.env.values(), numbers)).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 6],
      [4, 6],
    ]);
  });

  test("that are given are not computed, and what only they need is computed all the same", () => {
    const { gm, nodes } = chain();
    const ran: string[] = [];
    class Watch extends Interpreter {
      override runNode(node: Node): unknown {
        ran.push(node.name);
        return super.runNode(node);
      }
    }
    const initialEnv = new Map([[nodes["two"] as Node, tensor([10, 20], { dtype: "float32" })]]);
    expect(numbers(new Watch(gm).runWith([x], { initialEnv }))).toEqual([11, 22]);
    expect(ran).toEqual(["x", "plus_one", "sum_1", "output"]);
    expect(initialEnv.size).toBe(1);
  });

  test("reach a call in the containers of its arguments", () => {
    const graph = new Graph();
    const a = graph.placeholder("a");
    const seen: unknown[] = [];
    const call = graph.callFunction("my.target", [[a, tuple(a, 1)], slice(a, null)], {
      options: { k: [a] },
      none: null,
    });
    graph.output({ out: [call, tuple(a)] });
    class Watch extends Interpreter {
      override callFunction(...given: [string, readonly unknown[], Readonly<Record<string, unknown>>]): unknown {
        seen.push(...given);
        return 7;
      }
    }
    const result = new Watch(new GraphModule({}, graph)).run(5);
    expect(result).toEqual({ out: [7, ValueTuple.frozen([5])] });
    expect(seen).toEqual([
      "my.target",
      [[5, ValueTuple.frozen([5, 1])], new Slice(5, null, null)],
      { options: { k: [5] }, none: null },
    ]);
  });

  test("may be null and undefined", () => {
    const graph = new Graph();
    const a = graph.placeholder("a");
    graph.output([a, graph.callFunction("my.calls", [a])]);
    const gm = new GraphModule({}, graph);
    expect(new Interpreter(gm).run(() => undefined)).toEqual([expect.any(Function), undefined]);
  });
});

describe("IN-04, IN-05: inputs", () => {
  test("that are missing have their defaults, or are asked for", () => {
    const graph = new Graph();
    graph.output([graph.placeholder("a"), graph.placeholder("b", undefined, 3.5)]);
    const interpreter = new Interpreter(new GraphModule({}, graph));
    expect(interpreter.run(1)).toEqual([1, 3.5]);
    expect(interpreter.run(1, undefined)).toEqual([1, 3.5]);
    expect(interpreter.run(1, null)).toEqual([1, null]);
    expect(() => interpreter.run()).toThrow(
      expect.objectContaining({
        kind: "InputCount",
        reason: "Expected positional argument for parameter a, but one was not passed in!",
        node: "a",
        notes: ["While executing %a : [num_users=1] = placeholder[target=a]"],
      }),
    );
  });

  test("that are too many are not looked at", () => {
    expect(new Interpreter(inputsOf("a")).run(1, 2, 3)).toEqual([1]);
  });

  test("are taken all by *args, and one by **kwargs", () => {
    expect(new Interpreter(inputsOf("a", "*args")).run(1, 2, 3)).toEqual([1, [2, 3]]);
    expect(new Interpreter(inputsOf("a", "*args", "**kwargs")).run(1)).toEqual([1, [], {}]);
    expect(new Interpreter(inputsOf("a", "**kwargs")).run(1, { k: 2 })).toEqual([1, { k: 2 }]);
  });

  test("of a boxed run are taken out of their array", () => {
    const args = [1, 2];
    expect(new Interpreter(inputsOf("a", "b")).boxedRun(args)).toEqual([1, 2]);
    expect(args).toEqual([]);
  });

  test("of a boxed run must be as many as the placeholders, and stay otherwise", () => {
    for (const [args, detail] of [
      [[1], "missing"],
      [[1, 2, 3], "extra"],
    ] as const) {
      const given = [...args];
      expect(() => new Interpreter(inputsOf("a", "b")).boxedRun(given)).toThrow(
        `Interpreter.boxedRun expected 2 arguments for placeholders but received ${args.length} (${detail} arguments)`,
      );
      expect(given).toEqual(args);
    }
  });
});

describe("IN-06: attributes", () => {
  const root = new (class extends Module {
    override training = false;
    readonly settings = { scale: 2 };
    inner = new (class extends Module {
      buffer: Tensor | null = null;
      override forward(a: number, options?: unknown): unknown {
        return [a, options];
      }
    })();
  })();
  root.inner.registerBuffer("held", x);

  test("are tensors, modules and properties of the module", () => {
    const graph = new Graph();
    graph.output(["inner.held", "inner", "settings"].map((it) => graph.getAttr(it)));
    expect(new Interpreter(root, { graph }).run()).toEqual([x, root.inner, { scale: 2 }]);
  });

  test("that are missing are named up to the part that is missing", () => {
    const paths = { "none.a.b": "none", "inner.none": "inner.none", "inner.none.x": "inner.none" };
    const hidden = { constructor: "constructor", "inner.__proto__": "inner.__proto__" };
    for (const [path, named] of Object.entries({ ...paths, ...hidden })) {
      const graph = new Graph();
      graph.output(graph.getAttr(path));
      expect(() => new Interpreter(root, { graph }).run(), path).toThrow(
        expect.objectContaining({
          kind: "AttributeMissing",
          reason: `Node referenced nonexistent target ${named}`,
          notes: [expect.stringContaining("While executing %")],
        }),
      );
    }
  });

  test("that are called must be modules, and get keyword arguments as they were traced", () => {
    const graph = new Graph();
    graph.output(graph.callModule("inner", [1], { keep_dim: true }));
    expect(new Interpreter(root, { graph }).run()).toEqual([1, { keep_dim: true }]);
    const other = new Graph();
    other.output(other.callModule("inner.held", [1]));
    expect(() => new Interpreter(root, { graph: other }).run()).toThrow("`inner.held` is no module");
  });

  test("need a graph that refers to them", () => {
    expect(() => new Interpreter(root)).toThrow(expect.objectContaining({ kind: "GraphArgument" }));
  });
});

describe("IN-01: overriding", () => {
  test("reaches every kind of node", () => {
    const log: string[] = [];
    class Log extends Interpreter {
      override placeholder(target: string): unknown {
        return log.push(`placeholder ${target}`);
      }
      override getAttr(target: string): unknown {
        return log.push(`getAttr ${target}`);
      }
      override callFunction(target: string, args: readonly unknown[], kwargs: object): unknown {
        return log.push(`callFunction ${target}(${args.join(", ")}) ${JSON.stringify(kwargs)}`);
      }
      override callMethod(target: string, args: readonly unknown[]): unknown {
        return log.push(`callMethod ${target}(${args.join(", ")})`);
      }
      override callModule(target: string, args: readonly unknown[]): unknown {
        return log.push(`callModule ${target}(${args.join(", ")})`);
      }
      override output(_target: string, args: readonly unknown[]): unknown {
        return log.concat(`output(${args.join(", ")})`);
      }
    }
    const graph = new Graph();
    const a = graph.placeholder("a");
    const attribute = graph.getAttr("w");
    const call = graph.callFunction("torch.add", [a, attribute], { alpha: a });
    const method = graph.callMethod("relu", [call]);
    graph.output(graph.callModule("layer", [method]));
    expect(new Log(new GraphModule(), { graph }).run()).toEqual([
      "placeholder a",
      "getAttr w",
      'callFunction torch.add(1, 2) {"alpha":1}',
      "callMethod relu(3)",
      "callModule layer(4)",
      "output(5)",
    ]);
  });

  test("may edit the graph while it runs", () => {
    const { gm, nodes } = chain();
    class Edit extends Interpreter {
      override runNode(node: Node): unknown {
        if (node === nodes["both"]) node.append(this.graph.callFunction(plusOne, [node]));
        return super.runNode(node);
      }
    }
    expect(numbers(new Edit(gm).run(x))).toEqual([4, 6]);
    expect(numbers(new Interpreter(gm).run(x))).toEqual([4, 6]);
  });
});

describe("a run inside a run", () => {
  test("of the same interpreter leaves the outer one as it was", () => {
    const graph = new Graph();
    const [a, run] = [graph.placeholder("a"), graph.placeholder("run")];
    const inner = graph.callFunction(calls, [run]);
    graph.output([a, inner]);
    const interpreter = new Interpreter(new GraphModule({}, graph));
    const result = interpreter.run(1, () => interpreter.run(2, () => interpreter.run(3, () => "deep")));
    expect(result).toEqual([1, [2, [3, "deep"]]]);
    expect(Array.from(interpreter.env.values())).toEqual([result]);
  });

  test("that fails leaves the outer one as it was", () => {
    const graph = new Graph();
    const [a, run] = [graph.placeholder("a"), graph.placeholder("run")];
    graph.output([a, graph.callFunction(calls, [run])]);
    const interpreter = new Interpreter(new GraphModule({}, graph));
    const attempt = (): unknown => {
      try {
        return interpreter.run(2, () => {
          throw new Error("no");
        });
      } catch {
        return "caught";
      }
    };
    expect(interpreter.run(1, attempt)).toEqual([1, "caught"]);
  });

  test("that others start meanwhile sees nothing of them", async () => {
    const { gm } = chain();
    const interpreter = new Interpreter(gm);
    const results = await Promise.all(
      [1, 2, 3].map(async (it) => {
        await Promise.resolve();
        return numbers(interpreter.run(tensor([it], { dtype: "float32" })));
      }),
    );
    expect(results).toEqual([[4], [6], [8]]);
  });
});

describe("IN-06: an error", () => {
  const line = "While executing %fails : [num_users=1] = call_function[target=my.fails](args = (%error,), kwargs = {})";

  test("of ours stays itself and names the node", () => {
    const error = fxError("GraphArgument", "no", { help: "yes", notes: ["first"] });
    expect(caught(failing(error))).toBe(error);
    expect(error).toBeInstanceOf(GraphError);
    expect(error).toMatchObject({ code: "FX0205", node: "fails", notes: ["first", line], help: "yes", reason: "no" });
    expect(error.message).toBe(`FX0205: no (at %fails)\n  note: first\n  note: ${line}\n  help: yes`);
    expect(error.stack).toContain(line);
  });

  test("of another class keeps its type, cause and properties", () => {
    const error = new RangeError("too far", { cause: "reason" });
    expect(caught(failing(error))).toBe(error);
    expect([error.message, error.cause]).toEqual([`too far\n\n${line}`, "reason"]);
    expect(error.stack).toContain(`RangeError: too far\n\n${line}\n    at`);
    expect((caught(failing(new Error(""))) as Error).message).toBe(line);
  });

  test("that cannot be changed, or is none, passes as it is", () => {
    const frozen = Object.freeze(new Error("cold"));
    expect(caught(failing(frozen))).toBe(frozen);
    expect(caught(failing("text"))).toBe("text");
    expect(caught(failing(undefined))).toBe(undefined);
  });

  test("names the user's line", () => {
    const error = caught(failing(new Error("no"), "at forward (model.ts:3:5)")) as Error;
    expect(error.message).toBe(`no\n\n${line}\nOriginal traceback:\nat forward (model.ts:3:5)`);
  });

  test("is told once, however often it is thrown", () => {
    const error = new Error("again");
    const run = failing(error);
    for (let count = 0; count < 3; count++) caught(run);
    expect(error.message).toBe(`again\n\n${line}`);
  });

  test("in a module in a module names both nodes, the inner one first", () => {
    const inner = new Graph();
    inner.output(inner.callFunction(fails, [inner.placeholder("error")]));
    const graph = new Graph();
    graph.output(graph.callModule("sub", [graph.placeholder("e")]));
    const gm = new GraphModule({ sub: new GraphModule({}, inner) }, graph);
    const error = caught(() => gm.forward(fxError("InvalidArgument", "no"))) as FxError;
    expect(error.node).toBe("fails");
    expect(error.notes).toEqual([line, expect.stringContaining("While executing %sub : ")]);
  });

  test("of a use before the definition says what to do", () => {
    const graph = new Graph();
    const a = graph.placeholder("a");
    const call = graph.callFunction(plusOne, [a]);
    graph.output(call);
    a.prepend(call);
    expect(() => new Interpreter(new GraphModule({}, graph)).run(x)).toThrow(
      expect.objectContaining({ kind: "GraphInvalid", reason: "Node plus_one referenced nonexistent value a!" }),
    );
  });
});

describe("IN-07: the code generator of a graph", () => {
  class Paired extends CodeGen {
    override processInputs(...[pair]: readonly unknown[]): readonly unknown[] {
      return pair as readonly unknown[];
    }
    override processOutputs(output: unknown): unknown {
      return { output };
    }
  }
  const gm = inputsOf("a", "b");
  gm.graph.setCodegen(new Paired());

  test("says what the inputs and the output are", () => {
    expect(new Interpreter(gm).run([1, 2])).toEqual({ output: [1, 2] });
    expect(gm.forward([1, 2])).toEqual({ output: [1, 2] });
    expect(new Interpreter(gm).boxedRun([1, 2])).toEqual({ output: [1, 2] });
  });

  test("is not asked, on request", () => {
    expect(new Interpreter(gm).runWith([1, 2], { enableIoProcessing: false })).toEqual([1, 2]);
  });

  test("is kept by a transformer, which does not ask it", () => {
    expect(new Transformer(gm).transform().forward([3, 4])).toEqual({ output: [3, 4] });
  });
});

test("a graph without an output gives null", () => {
  expect(new Interpreter(new GraphModule()).run()).toBe(null);
});
