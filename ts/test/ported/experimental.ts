/**
 * Programs of passes that split, fuse, normalize and match.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping, no-shadow -- each program is read by itself
import {
  AnnotateTypesWithSchema,
  CapabilityBasedPartitioner,
  createOpSupport,
  exportProgram,
  extractSubgraph,
  F,
  fuse,
  fuseByPartitions,
  getSourcePartitions,
  Graph,
  GraphModule,
  Interpreter,
  legalizeGraph,
  Module,
  nn,
  type Node,
  NormalizeArgs,
  NormalizeOperators,
  operator,
  Parameter,
  removeDropout,
  replacePattern,
  replacePatternWithFilters,
  Splitter,
  splitByTags,
  splitConstSubgraphs,
  stableTopologicalSort,
  SubgraphMatcher,
  symbolicTrace,
  type Tensor,
  torch,
  Transformer,
  tuple,
} from "../../src/index.ts";
import { filled, full, message, names, numbers, type Programs, type Say } from "./said.ts";
import { Affine } from "./tracing.ts";

const { add, mul, sub } = operator;

/** Says a graph and those of the modules that it calls. */
function sayParts(say: Say, split: GraphModule): void {
  say(split.graph);
  for (const [name, child] of split.namedChildren()) if (child instanceof GraphModule) say(`${name}: ${child.graph}`);
}

function byName(gm: GraphModule): Map<string, Node> {
  return new Map(gm.graph.nodes.map((it) => [it.name, it]));
}

export const experimental: Programs = {
  test_fuse(say) {
    class M extends Module {
      conv = new nn.Conv2d(1, 2, 1);
      bn = new nn.BatchNorm2d(2);
      lin = new nn.Linear(2, 2);
      bn1 = new nn.BatchNorm1d(2);
      override forward(x: Tensor): Tensor {
        return this.bn1(this.lin(this.bn(this.conv(x)).sum(tuple(2, 3) as never)));
      }
    }
    const module = filled(new M()).eval();
    for (const it of ["bn", "bn1"]) module.getBuffer(`${it}.running_var`).fill_(1);
    const fused = fuse(module);
    say(fused.graph);
    say(fused.forward(numbers(1, 1, 2, 2)));
    say([...fused.namedModules().keys()].toSorted());
  },
  test_remove_dropout(say) {
    say(
      removeDropout(new nn.Sequential(new nn.Linear(2, 2), new nn.Dropout(0.5), new nn.ReLU(), new nn.Dropout(0.1)))
        .graph,
    );
  },
  test_extract_subgraph(say) {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU(), new nn.Tanh()));
    const nodes = gm.graph.nodes.filter((it) => it.op === "call_module");
    say(extractSubgraph(gm, nodes.slice(0, 2), [gm.graph.first as Node], [nodes[1] as Node]).graph);
  },
  test_normalize_args(say) {
    const f = (x: Tensor, y: Tensor): Tensor => torch.add(F.relu(x), torch.max(y), { alpha: 2 });
    const gm = symbolicTrace(f);
    new NormalizeArgs().call(gm);
    say(gm.graph);
    class M extends Module {
      conv = new nn.Conv2d(1, 1, 1);
      override forward(x: Tensor): Tensor {
        return F.maxPool2d(this.conv(x), 2, { stride: 1 });
      }
    }
    const second = symbolicTrace(new M());
    new NormalizeArgs().call(second);
    say(second.graph);
  },
  test_normalize_operators(say) {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => sub(add(torch.add(x, y), torch.mul(x, y)), torch.div(x, y)));
    new NormalizeOperators().call(gm);
    say(gm.graph);
  },
  test_annotate_types_with_schema(say) {
    const gm = symbolicTrace((x: Tensor) => torch.relu(torch.add(x, x)));
    new AnnotateTypesWithSchema().call(gm);
    say(gm.graph.nodes.filter((it) => it.op === "call_function").map((it) => it.type));
  },
  test_split_by_tags(say) {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => mul(torch.neg(add(torch.relu(x), y)), torch.abs(x)));
    const tags: Readonly<Record<string, string>> = { relu: "a", add: "a", neg: "b", abs_1: "a", mul: "b" };
    sayParts(
      say,
      splitByTags(gm, ["a", "b"], (node) => tags[node.name]),
    );
  },
  test_capability_partitioner(say) {
    const support = createOpSupport(
      (_, node) => node.op === "call_function" && ["torch.relu", "torch.neg", "operator.add"].includes(node.target),
    );
    const f = (x: Tensor, y: Tensor): unknown => {
      const d = add(torch.abs(torch.neg(torch.relu(x))), y);
      return tuple(torch.relu(d), torch.neg(y));
    };
    const sorted = (it: CapabilityBasedPartitioner): string[][] =>
      it
        .proposePartitions()
        .map(({ nodes }) => names(nodes).toSorted())
        .toSorted();
    const single = new CapabilityBasedPartitioner(symbolicTrace(f), support, { allowsSingleNodePartition: true });
    say(sorted(single));
    sayParts(say, single.partitionAndFuse());
    say(sorted(new CapabilityBasedPartitioner(symbolicTrace(f), support, { allowsSingleNodePartition: false })));
  },
  test_fuse_by_partitions(say) {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => mul(torch.neg(add(torch.relu(x), y)), torch.abs(x)));
    const groups = (from: GraphModule, ...all: string[][]): { nodes: Set<Node> }[] => {
      const nodes = byName(from);
      return all.map((group) => ({ nodes: new Set(group.map((it) => nodes.get(it) as Node)) }));
    };
    sayParts(say, fuseByPartitions(gm, groups(gm, ["relu", "add"], ["neg", "mul"])));
    const chain = symbolicTrace((x: Tensor) => torch.neg(torch.relu(torch.abs(x))));
    say(message(() => fuseByPartitions(chain, groups(chain, ["abs_1", "neg"]))));
  },
  test_legalize_graph(say) {
    const { graph } = symbolicTrace((x: Tensor) => torch.neg(torch.relu(torch.abs(x))));
    const mix = (): void => graph.nodes.at(3)?.append(graph.nodes.at(1) as Node);
    mix();
    say(message(() => graph.lint()));
    legalizeGraph(graph);
    say(graph);
    mix();
    stableTopologicalSort(graph);
    say(graph);
  },
  test_source_partitions(say) {
    class M extends Module {
      a = new nn.Linear(2, 2);
      b = new nn.Linear(2, 2);
      act = new nn.ReLU();
      override forward(x: Tensor): Tensor {
        return torch.neg(this.b(this.act(this.a(x))));
      }
    }
    const { graph } = exportProgram(new M(), [full(1, 1, 2)]);
    const titles = new Map<unknown, string>([
      [nn.Linear, "Linear"],
      [nn.ReLU, "ReLU"],
      [torch.neg, "neg"],
    ]);
    for (const [source, found] of getSourcePartitions(graph, [nn.Linear, nn.ReLU, torch.neg])) {
      say(titles.get(source));
      for (const { nodes, inputNodes, outputNodes, params } of found) {
        say([nodes, inputNodes, outputNodes, params].map((it) => names(it).toSorted()));
      }
    }
  },
  test_node_hooks(say) {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x));
    const { graph } = gm;
    const lines: string[] = [];
    const created = gm.graphHooks.onCreate((node) => void lines.push(`create ${node.name}`));
    gm.graphHooks.onErase((node) => void lines.push(`erase ${node.name}`));
    gm.graphHooks.onReplace((old, name, user) => void lines.push(`replace ${old.name} ${name} ${user.name}`));
    const relu = graph.find("relu") as Node;
    const neg = graph.insertingAfter(relu, () => graph.callFunction(torch.neg, [relu]));
    relu.replaceAllUsesWith(neg, { filter: (user) => user !== neg });
    neg.replaceInputWith(relu, relu.args[0] as Node);
    graph.eraseNode(relu);
    created[Symbol.dispose]();
    graph.insertingAfter(neg, () => graph.callFunction(torch.abs, [neg]));
    say(lines);
    say(graph);
  },
  test_interpreter_errors(say) {
    const gm = symbolicTrace((x: Tensor) => torch.mm(torch.relu(x), x));
    say(message(() => new Interpreter(gm).run(full(1, 2, 3))).split(" (")[0]);
    say(
      message(() => new Interpreter(gm).run())
        .split(".")[0]
        ?.slice(0, 20),
    );
    say(new Interpreter(gm).boxedRun([full(1, 2, 2)]));
  },
  test_const_fold_variants(say) {
    class M extends Module {
      a = new Parameter(full(1, 2));
      declare b: Tensor;
      relu = new nn.ReLU();
      constructor() {
        super();
        this.registerBuffer("b", full(2, 2));
      }
      override forward(x: Tensor): unknown {
        const folded = this.relu(sub(this.a, this.b));
        return tuple(add(x, folded), mul(x, add(this.a, 1)));
      }
    }
    const whole = splitConstSubgraphs(new M());
    say(whole.graph);
    say(whole.constSubgraphModule?.graph);
    say(whole.forward(full(1, 2)));
    const part = splitConstSubgraphs(symbolicTrace(new M()), {
      skipFoldingNodeFn: (node) => node.target === "operator.add",
    });
    say(part.graph);
    say(part.constSubgraphModule?.graph);
    class NoInput extends Module {
      a = new Parameter(full(1, 2));
      override forward(): Tensor {
        return this.a.neg();
      }
    }
    const alone = splitConstSubgraphs(new NoInput());
    say(alone.graph);
    say(alone.forward());
  },
  test_subgraph_rewriter_overlap(say) {
    const gm = symbolicTrace((x: Tensor) => torch.relu(torch.relu(torch.relu(x))));
    const found = replacePattern(
      gm,
      (x: Tensor) => torch.relu(torch.relu(x)),
      (x: Tensor) => torch.sigmoid(x),
    );
    gm.graph.lint();
    say(found.length);
    say(gm.graph);
  },
  test_subgraph_rewriter_callback(say) {
    const clamped = (x: Tensor, min: number): Tensor => torch.clamp(torch.neg(x), { min });
    const gm = symbolicTrace((x: Tensor) => add(clamped(x, 0), clamped(x, 1)));
    const found = replacePatternWithFilters(gm, (x: Tensor) => clamped(x, 0), undefined, {
      ignoreLiterals: true,
      replacementCallback: ({ nodesMap }) => {
        const clamp = [...nodesMap.values()].find((it) => (it as Node | null)?.target === "torch.clamp") as Node;
        const isLow = clamp.kwargs["min"] === 0;
        return symbolicTrace((x: Tensor) => (isLow ? torch.relu(x) : torch.sigmoid(x))).graph;
      },
    });
    say(found.length);
    say(gm.graph);
  },
  test_subgraph_rewriter_unused_args(say) {
    const f = (x: Tensor, y: Tensor): unknown => {
      const t = torch.neg(x);
      return tuple(add(t, y), t);
    };
    const addmm = (x: Tensor, y: Tensor, z: Tensor): Tensor => torch.addmm(x, y, z);
    for (const [root, pattern, replacement] of [
      [f, (x: Tensor): Tensor => torch.neg(x), (x: Tensor): Tensor => torch.relu(x)],
      [addmm, addmm, (x: Tensor, y: Tensor, z: Tensor): Tensor => torch.add(x, torch.mm(y, z))],
    ] as const) {
      const gm = symbolicTrace(root as never);
      const found = replacePattern(gm, pattern as never, replacement as never);
      gm.graph.lint();
      say(found.length);
      say(gm.graph);
    }
  },
  test_matcher_multiple_outputs(say) {
    const pattern = (x: Tensor, w: Tensor): unknown => {
      const y = torch.mm(x, w);
      return tuple(torch.relu(y), torch.sigmoid(y));
    };
    const apart = (x: Tensor, w: Tensor): Tensor => add(torch.relu(torch.mm(x, w)), torch.sigmoid(torch.mm(x, w)));
    const shared = (x: Tensor, w: Tensor): Tensor => {
      const y = torch.mm(x, w);
      return add(torch.relu(y), torch.sigmoid(y));
    };
    const matcher = new SubgraphMatcher(symbolicTrace(pattern).graph);
    say(matcher.match(symbolicTrace(apart).graph).length);
    const found = matcher.match(symbolicTrace(shared).graph);
    say(found.map((it) => it.returningNodes.map(String)));
    say(found.map((it) => it.placeholderNodes.map(String)));
  },
  test_print_tabular_rows(say) {
    for (const row of symbolicTrace(new Affine()).graph.tabular()) say(row);
  },
  test_minimizer_free_transformer(say) {
    class Double extends Transformer {
      override callModule(...call: Parameters<Interpreter["callModule"]>): unknown {
        return mul(super.callModule(...call) as Tensor, 2);
      }
    }
    const changed = new Double(symbolicTrace(new Affine())).transform();
    say(changed.graph);
    say(changed.forward(numbers(3, 4)));
  },
  test_graph_copy_into(say) {
    const a = symbolicTrace((x: Tensor) => add(torch.relu(x), 1)).graph;
    const b = symbolicTrace((x: Tensor) => torch.neg(x)).graph;
    const graph = new Graph();
    const x = graph.placeholder("x");
    const first = graph.graphCopy(a, new Map([[a.first as Node, x]])) as Node;
    const second = graph.graphCopy(a, new Map([[a.first as Node, first]])) as Node;
    const third = graph.graphCopy(b, new Map([[b.first as Node, second]])) as Node;
    graph.output(tuple(third, first));
    say(graph);
    say(new GraphModule({}, graph).forward(numbers(3)));
  },
  test_splitter(say) {
    const gm = symbolicTrace((x: Tensor) => add(torch.abs(torch.neg(torch.relu(x))), torch.relu(x)));
    const support = createOpSupport((_, node) => ["torch.relu", "torch.neg"].includes(node.target));
    sayParts(say, new Splitter(gm, [numbers(3)], support, { minAccModuleSize: 1 }).split());
  },
};
