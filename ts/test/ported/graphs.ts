/**
 * Programs that build and edit graphs.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import {
  Graph,
  GraphModule,
  nn,
  type Node,
  operator,
  Proxy,
  symbolicTrace,
  type Tensor,
  torch,
  tuple,
} from "../../src/index.ts";
import { filled, full, message, names, numbers, type Programs } from "./said.ts";
import { AddRelu } from "./tracing.ts";

const { add, mul } = operator;

/** `relu(x)`, with an input that nothing uses. */
function small(): readonly [Graph, Node, Node, Node] {
  const graph = new Graph();
  const [x, y] = [graph.createNode("placeholder", "x"), graph.createNode("placeholder", "y")];
  const b = graph.createNode("call_function", torch.relu, [x]);
  graph.output(b);
  return [graph, x, y, b];
}

export const graphs: Programs = {
  test_all_input_nodes(say) {
    const graph = new Graph();
    const a = graph.placeholder("x");
    const b = graph.callModule("linear_mod", [a]);
    const c = graph.getAttr("y_attr");
    const d = graph.callFunction(operator.add, [b, c]);
    const e = graph.callFunction(torch.unsqueeze, [d, 0]);
    graph.output(e);
    graph.lint();
    for (const it of [b, c, d, e]) say(names(it.allInputNodes));
  },
  test_graph_fns(say) {
    const graph = new Graph();
    const a = graph.placeholder("a");
    const d = graph.callMethod("add", [graph.callModule("linear", [a]), graph.getAttr("bias")]);
    graph.output(graph.callFunction(torch.neg, [d]));
    const gm = new GraphModule({ linear: filled(new nn.Linear(3, 4)), bias: numbers(4) }, graph);
    gm.graph.lint();
    say(gm.graph);
    say(gm.forward(full(1, 3)));
  },
  test_remove_uses(say) {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const relu = graph.callFunction(torch.relu, [x]);
    const neg = graph.callFunction(torch.neg, [relu]);
    graph.output(neg);
    neg.replaceAllUsesWith(relu);
    graph.eraseNode(neg);
    say(names(relu.users));
    say(graph);
  },
  test_construct_root_dict(say) {
    const graph = new Graph();
    const a = graph.createNode("placeholder", "x");
    const b = graph.createNode("call_module", "foo.bar.baz", [a]);
    const c = graph.createNode("get_attr", "zip.zap.zam");
    graph.output(graph.createNode("call_function", operator.add, [b, c]));
    const gm = new GraphModule({ "foo.bar.baz": filled(new nn.Linear(3, 4)), "zip.zap.zam": numbers(4) }, graph);
    gm.graph.lint();
    say(gm.graph);
    say(gm.forward(full(1, 3)));
    say([...gm.namedModules().keys()]);
  },
  test_copy_no_remap(say) {
    const copied = new Graph();
    for (const node of symbolicTrace(new AddRelu()).graph.nodes) {
      say(message(() => copied.nodeCopy(node)).split(" ")[0]);
    }
  },
  test_wrong_topo(say) {
    const graph = new Graph();
    const a = graph.createNode("placeholder", "x");
    const b = graph.createNode("call_module", "foo.bar.baz", [a]);
    const c = graph.createNode("get_attr", "zip.zap.zam");
    graph.output(graph.createNode("call_function", operator.add, [b, c]));
    const nodes = graph.nodes.toArray();
    nodes[3]?.append(nodes[2] as Node);
    say(message(() => graph.lint()));
  },
  test_typename_print(say) {
    const graph = new Graph();
    const x = graph.createNode("placeholder", "x");
    graph.output(graph.createNode("call_function", torch.relu, [x], {}, undefined, "torch.Tensor"));
    say(graph);
  },
  test_deepcopy_recursion_depth(say) {
    const graph = new Graph();
    let x = graph.placeholder("x");
    for (let at = 0; at < 1200; at++) x = graph.callFunction(torch.relu, [x]);
    graph.output(x);
    const copied = graph.clone();
    const usersOf = (it: Graph): string => JSON.stringify(it.nodes.map((node) => names(node.users)));
    say(copied.nodes.length);
    say(String(names(copied.nodes)) === String(names(graph.nodes)));
    say(usersOf(copied) === usersOf(graph));
  },
  test_replace_input(say) {
    const [graph, x, y, b] = small();
    b.replaceInputWith(x, y);
    say(graph);
    say([names(x.users), names(y.users)]);
  },
  test_insertion_point(say) {
    const [graph, x, , b] = small();
    graph.insertingBefore(b, () => {
      const neg = graph.callFunction(torch.neg, [x]);
      b.args = [neg, ...b.args.slice(1)];
    });
    graph.callFunction(torch.abs, [x]);
    say(graph);
  },
  test_update_args_api(say) {
    const [graph, x, y, b] = small();
    b.updateArg(0, y);
    say(graph);
    b.updateKwarg("input", x);
    say(graph);
    b.insertArg(0, x);
    say(graph);
    b.args = [];
    say(graph);
    say([names(x.users), names(y.users)]);
  },
  test_move_before(say) {
    const [graph, x, , b] = small();
    const neg = graph.callFunction(torch.neg, [x]);
    b.args = [neg];
    b.prepend(neg);
    say(graph);
    b.prepend(b);
    x.append(b);
    say(names(graph.nodes));
    say(graph.nodes.length);
  },
  test_erase_node_error(say) {
    const { graph } = symbolicTrace(new AddRelu());
    for (const node of graph.nodes.toArray()) say(message(() => graph.eraseNode(node)));
  },
  test_find_uses(say) {
    const graph = new Graph();
    const x = new Proxy(graph.placeholder("x"));
    const [y, z, u] = [torch.relu(x), add(x, x), torch.neg(x)];
    graph.output((add(add(y, z as Tensor), u) as unknown as typeof x).node);
    graph.lint();
    say(graph);
    say(names(x.node.users));
  },
  test_inline_graph(say) {
    const outer = symbolicTrace((x: Tensor) => torch.relu(x));
    const inner = symbolicTrace((x: Tensor) => torch.neg(x));
    const combined = new Graph();
    const out = combined.graphCopy(outer.graph) as Node;
    combined.output(combined.graphCopy(inner.graph, new Map([[inner.graph.first as Node, out]])) as Node);
    say(combined);
    say(new GraphModule({}, combined).forward(numbers(3)));
  },
  test_multi_insert_point(say) {
    const graph = new Graph();
    const x = new Proxy(graph.placeholder("x"));
    const relu = torch.relu(x) as unknown as typeof x;
    const z = graph.insertingBefore(relu.node, () => torch.tanh(torch.neg(x)) as unknown as typeof x);
    graph.output(tuple(relu.node, z.node));
    graph.lint();
    say(graph);
  },
  test_reassign_args_kwargs_uses(say) {
    const graph = new Graph();
    const [x, y] = [new Proxy(graph.placeholder("x")), new Proxy(graph.placeholder("y"))];
    const z = add(x, y) as unknown as typeof x;
    const zed = add(add(z, z), z) as unknown as typeof x;
    graph.output(zed.node);
    zed.node.args = [zed.node.args[0] as Node, x.node];
    say(names(x.node.users));
    z.node.args = [y.node, y.node];
    say(names(x.node.users));
    say(names(y.node.users));
    say(graph);
  },
  test_no_mutation(say) {
    const [, x, y, b] = small();
    b.args = [[x, y]];
    say(message(() => void ((b.args[0] as Node[])[0] = y)).split(" ")[0]);
  },
  test_lint_unknown(say) {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.output(graph.callModule("missing", [x]));
    say(message(() => new GraphModule(new nn.Module(), graph)));
  },
  test_node_order(say) {
    const [graph, , , b] = small();
    const nodes = graph.nodes.toArray();
    say(nodes.slice(1).map((it, at) => (nodes[at] as Node).compare(it) < 0));
    say(names([...graph.nodes.reversed()].toSorted((a, c) => a.compare(c))));
    say(names(graph.nodes.reversed()));
    say([b.next?.name, b.prev?.name]);
    say(graph.outputNode()?.name);
    say([
      names(graph.findNodes({ op: "placeholder" })),
      names(graph.findNodes({ op: "call_function", target: torch.relu })),
    ]);
  },
  test_eliminate_dead_code(say) {
    const dead = (x: Tensor): Tensor => {
      const a = add(x, 1);
      torch.relu(a);
      torch.neg(x);
      return mul(x, 2);
    };
    let gm = symbolicTrace(dead);
    say(gm.graph.eliminateDeadCode());
    say(gm.graph);
    say(gm.graph.eliminateDeadCode());
    gm = symbolicTrace((x: Tensor, unused: Tensor) => {
      void unused;
      torch._assert(operator.gt(x.sum(), 0), "positive");
      x.add_(1);
      torch.rand([3]);
      return x;
    });
    say(gm.graph.eliminateDeadCode());
    say(gm.graph);
    gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()));
    (gm.graph.outputNode() as Node).args = [gm.graph.nodes.at(1) as Node];
    say(gm.graph.eliminateDeadCode());
    say(gm.graph);
    say(symbolicTrace(dead).graph.eliminateDeadCode((node) => node.target === "torch.neg"));
  },
};
