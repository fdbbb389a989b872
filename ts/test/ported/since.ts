/**
 * Programs after tests that `test_fx.py` has since PyTorch 2.0.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping, no-shadow -- each program is read by itself
import {
  CodeGen,
  deepCopy,
  Dict,
  float,
  Graph,
  GraphModule,
  Interpreter,
  Module,
  nn,
  type Node,
  operator,
  slice,
  symbolicTrace,
  type Tensor,
  torch,
  Tracer,
  Transformer,
  tuple,
} from "../../src/index.ts";
import { checked, full, message, names, numbers, type Programs } from "./said.ts";
import { Affine } from "./tracing.ts";

const { add, getitem, mul, sub } = operator;

/** An argument as Python prints a nested one here: nodes by their names, tuples as lists. */
function shown(arg: unknown): unknown {
  if (arg instanceof Dict) return new Map(Array.from(arg, ([key, it]) => [key, shown(it)]));
  if (Array.isArray(arg)) return arg.map(shown);
  return String(arg);
}

export const since: Programs = {
  test_trace_multiple_funcs(say) {
    class M extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        return add(x, y);
      }
      minus(x: Tensor, y: Tensor): Tensor {
        return sub(x, y);
      }
      twice(x: Tensor): Tensor {
        return mul(this.minus(x, x), 2);
      }
    }
    const traced = (method: string): Graph => {
      const tracer = new Tracer();
      tracer.tracedMethod = method;
      return tracer.trace(new M());
    };
    for (const method of ["forward", "minus", "twice"]) say(traced(method));
    say(message(() => traced("missing")).split(" ")[0]);
  },
  test_concrete_arg_none_assert(say) {
    const f = (x: Tensor, val: Tensor | null = null): Tensor => (val === null ? x : add(x, val));
    const gm = symbolicTrace(f, { concreteArgs: { val: null } });
    say(gm.graph);
    say(gm.forward(full(1, 2), null));
    say(message(() => gm.forward(full(1, 2), full(1, 2))));
  },
  test_nn_module_stack(say) {
    class Sub extends Module {
      conv = new nn.Conv2d(1, 1, 1);
      override forward(x: Tensor): Tensor {
        return add(this.conv(x), 1);
      }
    }
    class M extends Module {
      sub_mod = new Sub();
      override forward(x: Tensor): Tensor {
        return this.sub_mod(x);
      }
    }
    for (const node of symbolicTrace(new M()).graph.nodes) {
      const stack = node.meta.get("nn_module_stack") as ReadonlyMap<string, unknown> | undefined;
      say([node.name, [...(stack?.keys() ?? [])]]);
    }
  },
  test_graph_copy_output_node(say) {
    const { graph } = symbolicTrace((x: Tensor) => tuple(torch.relu(x), x));
    const copy = new Graph();
    const [value, node] = copy.graphCopy(graph, new Map(), { returnOutputNode: true }) as readonly [
      readonly Node[],
      Node,
    ];
    say(value.map((it) => it.name));
    say(node.name);
    say(copy);
  },
  test_insert_arg(say) {
    const graph = new Graph();
    const [x, y, z] = ["x", "y", "z"].map((it) => graph.placeholder(it)) as [Node, Node, Node];
    const out = graph.callFunction(torch.cat, [tuple(x, y)]);
    const users = (): string[][] => [x, y, z].map((it) => names(it.users));
    say(message(() => out.insertArg(3, z)));
    out.insertArg(1, z);
    say(shown(out.args));
    say(users());
    out.insertArg(2, { a: [x, tuple(y)] });
    say(shown(out.args));
    say(users());
  },
  test_rename(say) {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const [a, b] = [graph.callFunction(torch.relu, [x]), graph.callFunction(torch.relu, [x])];
    graph.output(tuple(a, b));
    a.rename("relu_1");
    b.rename("x");
    x.rename("input");
    say(names(graph.nodes));
    say(graph.callFunction(torch.relu, [x]).name);
    say(graph);
  },
  test_namespace(say) {
    const graph = new Graph();
    const wanted = [
      "a",
      "a",
      "a_1",
      "a",
      "a_01",
      "a",
      "1b",
      "sum",
      "for",
      "a b",
      "",
      "__x__",
      "A",
      "torch",
      "a_5",
      "a",
    ];
    for (const name of wanted) {
      say(graph.createNode("placeholder", name || "empty", [], {}, name === "" ? undefined : name).name);
    }
  },
  test_output_lists(say) {
    const f = (x: Tensor): unknown => ({
      a: [x, null],
      b: tuple(1, float(2), "s", true),
      c: slice(null, 2),
      d: torch.float32,
    });
    say(symbolicTrace(f).graph);
  },
  test_replace_all_uses_where(say) {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    const a = graph.callFunction(torch.neg, [x]);
    const b = graph.callFunction(torch.abs, [[x]]);
    const c = graph.callFunction(torch.add, [x], { other: { k: x } });
    graph.output(tuple(a, b, c, x));
    say(names(x.replaceAllUsesWith(y, { filter: (node) => node.op === "call_function" })));
    say(graph);
    say(names(y.replaceAllUsesWith(x)));
    say(graph);
    say(names(x.users));
  },
  test_propagate_meta(say) {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    x.meta.set("note", 5);
    graph.output(graph.callFunction(torch.neg, [x]));
    x.replaceAllUsesWith(y, { propagateMeta: true });
    say(y.meta.get("note"));
    say(graph);
    say(
      message(() => y.replaceAllUsesWith(x, { propagateMeta: true }))
        .split(" ")[0]
        ?.slice(0, 9),
    );
  },
  test_custom_codegen(say) {
    class ListCodeGen extends CodeGen {
      override processInputs(...inputs: readonly unknown[]): readonly unknown[] {
        return inputs[0] as readonly unknown[];
      }
    }
    const gm = symbolicTrace((a: Tensor, b: Tensor) => add(a, mul(b, 2)));
    gm.graph.setCodegen(new ListCodeGen());
    const given = [full(1, 2), full(1, 2)];
    say(gm.forward(given));
    say(new Interpreter(gm).run(given));
    say(new Transformer(gm).transform().forward(given));
    say(deepCopy(gm).forward(given));
  },
  test_module_class_names(say) {
    const gm = symbolicTrace(new Affine());
    say(gm.className);
    say(new GraphModule(gm, gm.graph, "Renamed").className);
    say(
      symbolicTrace(
        (
          () => (x: Tensor) =>
            x
        )(),
      ).className,
    );
    say([...gm.namedChildren().keys()]);
    say(gm.training);
    say(symbolicTrace(new Affine().eval()).training);
  },
  test_in_place_recorded(say) {
    const f = (x: Tensor): Tensor => {
      const y = x.clone();
      y.add_(1);
      y.mul_(2);
      y[0] = y.sum();
      return y;
    };
    say(message(() => symbolicTrace(f)).split("'")[1]);
    const g = (x: Tensor): Tensor => {
      const y = x.clone();
      y.add_(1).mul_(2);
      return y;
    };
    checked(say, g, numbers(3));
  },
  test_deep_nesting(say) {
    const f = (x: unknown): unknown => {
      const first = getitem(getitem(x, 0), 1);
      const second = getitem(getitem(x, 1), "k");
      return [[[first, second]], { a: { b: add(getitem(getitem(x, 1), "k") as Tensor, 1) } }];
    };
    checked(say, f, [[1, 2], { k: full(1, 1) }]);
  },
  test_call_method_spellings(say) {
    checked(say, (x: Tensor) => x.reshape(2, 2).transpose(0, 1).contiguous().unsqueeze(0).size(-1), numbers(4));
    checked(say, (x: Tensor) => x.mean({ dim: 0, keepdim: true }).squeeze(), numbers(4));
  },
};
