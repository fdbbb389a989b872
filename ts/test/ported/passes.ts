/**
 * Programs that rewrite graphs and run passes.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import {
  CSEPass,
  deepCopy,
  F,
  type GraphModule,
  Module,
  nn,
  operator,
  Parameter,
  PassBase,
  PassManager,
  type PassResult,
  passResultWrapper,
  type PatternSource,
  replacePattern,
  replacePatternWithFilters,
  splitConstSubgraphs,
  splitModule,
  SubgraphMatcher,
  symbolicTrace,
  type Tensor,
  thisBeforeThatPassConstraint,
  torch,
  type Traceable,
  tuple,
} from "../../src/index.ts";
import { full, message, names, numbers, type Programs, type Say } from "./said.ts";

const { add, mul } = operator;
const { aten } = torch.ops;

function replaced(say: Say, root: Traceable, pattern: PatternSource, replacement: PatternSource): GraphModule {
  const gm = symbolicTrace(root);
  const matches = replacePattern(gm, pattern, replacement);
  gm.graph.lint();
  say(matches.length);
  say(gm.graph);
  return gm;
}

const negRelu = (x: Tensor): Tensor => add(torch.neg(x), torch.relu(x));
const relu = (x: Tensor): Tensor => torch.relu(x);
const sigmoid = (x: Tensor): Tensor => torch.sigmoid(x);

export const passes: Programs = {
  test_subgraph_rewriter_preserves_logic(say) {
    replaced(say, negRelu, negRelu, negRelu);
  },
  test_subgraph_rewriter_with_oneliner_pattern(say) {
    replaced(
      say,
      (x: Tensor) => add(torch.neg(x), torch.neg(x)),
      (x: Tensor) => torch.neg(x),
      relu,
    );
  },
  test_subgraph_rewriter_single_pattern_match(say) {
    replaced(say, (x: Tensor) => torch.relu(negRelu(x)), negRelu, relu);
  },
  test_subgraph_rewriter_multiple_pattern_match(say) {
    const f = (x: Tensor, w1: Tensor, w2: Tensor): Tensor => {
      const m1 = torch.cat([w1, w2]).sum();
      const m2 = torch.cat([w1, w2]).sum();
      return add(add(x, torch.max(m1)), torch.max(m2));
    };
    replaced(
      say,
      f,
      (a: Tensor, b: Tensor) => torch.cat([a, b]).sum(),
      (a: Tensor, b: Tensor) => torch.stack([a, b]),
    );
  },
  test_subgraph_rewriter_graph_argument_order(say) {
    const mm = (x: Tensor, y: Tensor): Tensor => torch.mm(x, y);
    replaced(say, mm, mm, mm);
  },
  test_subgraph_rewriter_correct_output_replacement(say) {
    replaced(
      say,
      (x: Tensor, y: Tensor) => add(torch.neg(y), torch.relu(x)),
      relu,
      (x: Tensor) => torch.neg(x),
    );
  },
  test_subgraph_rewriter_traced_as_callable(say) {
    class Neg extends Module {
      override forward(x: Tensor): Tensor {
        return negRelu(x);
      }
    }
    class Gelu extends Module {
      override forward(x: Tensor): Tensor {
        return F.gelu(x);
      }
    }
    replaced(say, (x: Tensor) => add(negRelu(x), 1), symbolicTrace(new Neg()), symbolicTrace(new Gelu()));
  },
  test_subgraph_rewriter_pattern_is_entire_graph(say) {
    const f = (x: Tensor): Tensor => torch.add(torch.neg(x), torch.neg(x));
    replaced(say, f, f, sigmoid);
  },
  test_subgraph_rewriter_pattern_output_pattern_node_can_have_users(say) {
    const f = (x: Tensor): Tensor => {
      const y = torch.relu(x);
      return add(torch.neg(y), torch.abs(y));
    };
    replaced(say, f, relu, (x: Tensor) => torch.clamp(torch.relu(x), { max: 6 }));
  },
  test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users(say) {
    const f = (x: Tensor): Tensor => {
      const y = torch.relu(x);
      return add(torch.neg(y), torch.abs(y));
    };
    replaced(say, f, (x: Tensor) => torch.neg(torch.relu(x)), sigmoid);
  },
  test_subgraph_rewriter_placeholder_matching(say) {
    const pattern = (x: Tensor): Tensor =>
      torch.sigmoid((x as never as { dequantize(): Tensor }).dequantize()).to(torch.float16);
    class M extends Module {
      override forward(x: Tensor): Tensor {
        return torch.sigmoid((add(x, 3) as never as { dequantize(): Tensor }).dequantize()).to(torch.float16);
      }
    }
    replaced(say, new M(), pattern, sigmoid);
  },
  test_subgraph_rewriter_replaces_referenced_submodules(say) {
    class M extends Module {
      sigmoid = new nn.Sigmoid();
      submod = new nn.Sequential(new nn.Tanh());
      override forward(x: Tensor): Tensor {
        return this.submod(this.sigmoid(add(x, 1)));
      }
    }
    class Pattern extends Module {
      sigmoid = new nn.Sigmoid();
      submod = new nn.Sequential(new nn.Tanh());
      override forward(x: Tensor): Tensor {
        return this.submod(this.sigmoid(x));
      }
    }
    class Replacement extends Module {
      tanh = new nn.Tanh();
      override forward(x: Tensor): Tensor {
        return this.tanh(x);
      }
    }
    const gm = replaced(say, new M(), new Pattern(), new Replacement());
    say([...gm.namedModules().keys()].toSorted());
  },
  test_subgraph_rewriter_replace_consecutive_submodules(say) {
    replaced(
      say,
      (x: Tensor) => sigmoid(sigmoid(sigmoid(x))),
      sigmoid,
      (x: Tensor) => torch.exp(x),
    );
  },
  test_subgraph_rewriter_call_method(say) {
    const f = (x: Tensor): Tensor => (x as never as { dequantize(): Tensor }).dequantize().sigmoid().to(torch.float16);
    replaced(say, f, f, (x: Tensor) => x.to(torch.float16));
  },
  test_subgraph_rewriter_nodes_with_kwargs(say) {
    const f = (a: Tensor, b: Tensor): Tensor => torch.cat([a, b], { dim: 1 });
    const stacked = (a: Tensor, b: Tensor): Tensor => torch.stack([a, b], { dim: 0 });
    replaced(say, f, f, stacked);
    replaced(say, f, (a: Tensor, b: Tensor) => torch.cat([a, b], { dim: 0 }), stacked);
  },
  test_subgraph_rewriter_with_filters(say) {
    const gm = symbolicTrace((x: Tensor) => add(torch.relu(torch.neg(x)), torch.relu(torch.neg(torch.abs(x)))));
    const found = replacePatternWithFilters(gm, (x: Tensor) => torch.relu(torch.neg(x)), sigmoid, {
      matchFilters: [({ placeholderNodes: [first] }) => (first as { op?: string } | undefined)?.op === "placeholder"],
    });
    say(found.length);
    say(gm.graph);
    say(found.map((it) => names(it.replacements)));
  },
  test_subgraph_rewriter_multiple_returns(say) {
    const two = (x: Tensor): unknown => {
      const y = torch.relu(x);
      return tuple(torch.neg(y), torch.abs(y));
    };
    const f = (x: Tensor): Tensor => {
      const y = torch.relu(x);
      return add(torch.neg(y), torch.abs(y));
    };
    replaced(say, f, two, (x: Tensor) => tuple(torch.sigmoid(x), torch.tanh(x)));
  },
  test_matcher_with_literals(say) {
    const clamped = (x: Tensor, max: number): Tensor => torch.clamp(x, { min: 0, max });
    const gm = symbolicTrace((x: Tensor) => add(clamped(x, 6), clamped(x, 3)));
    const pattern = symbolicTrace((x: Tensor) => clamped(x, 6));
    for (const ignoreLiterals of [false, true]) {
      const matches = new SubgraphMatcher(pattern.graph, { ignoreLiterals }).match(gm.graph);
      say(matches.map((it) => [...it.nodesMap.values()].map(String).toSorted()));
    }
  },
  test_matcher_split_to_users(say) {
    const gm = symbolicTrace((x: Tensor) => add(torch.relu(torch.neg(x)), torch.relu(torch.abs(x))));
    for (const f of [
      relu,
      (x: Tensor): Tensor => torch.relu(torch.neg(x)),
      (x: Tensor, y: Tensor): Tensor => add(torch.relu(x), torch.relu(y)),
      (x: Tensor): Tensor => torch.tanh(x),
    ]) {
      say(
        new SubgraphMatcher(symbolicTrace(f as Traceable).graph)
          .match(gm.graph)
          .map((it) => it.returningNodes.map(String)),
      );
    }
  },
  test_cse_pass(say) {
    const many = (x: Tensor): unknown => {
      const [a, b] = [aten.neg.default(x) as Tensor, aten.neg.default(x) as Tensor];
      const c = aten.add.Tensor(a, b) as Tensor;
      const d = aten.add.Tensor(b, a) as Tensor;
      return tuple(c, d, aten.add.Tensor(a, b) as Tensor);
    };
    const rand = (x: Tensor): unknown =>
      tuple(aten.rand_like.default(x) as Tensor, aten.rand_like.default(x) as Tensor);
    const literal = (x: Tensor): unknown => tuple(...[1, 2, 1].map((it) => aten.add.Scalar(x, it) as Tensor));
    for (const f of [many, rand, literal]) {
      const res = new CSEPass().call(symbolicTrace(f)) as PassResult;
      say(res.modified);
      say(res.graphModule.graph);
    }
  },
  test_const_fold(say) {
    class M extends Module {
      a = new Parameter(full(1, 2));
      b = new Parameter(full(2, 2));
      override forward(x: Tensor): Tensor {
        return mul(x, add(this.a, this.b).neg());
      }
    }
    const folded = splitConstSubgraphs(new M());
    say(folded.graph);
    say(folded.forward(full(1, 2)));
    say(folded.graph);
    say([...folded.namedParameters().keys()]);
    say(splitConstSubgraphs(symbolicTrace(relu)).graph);
  },
  test_split_module(say) {
    const f = (x: Tensor, y: Tensor): Tensor => mul(torch.neg(add(torch.relu(x), y)), torch.relu(x));
    const gm = symbolicTrace(f);
    const calls = gm.graph.nodes.filter((it) => it.op === "call_function");
    for (const part of [(): number => 0, (at: number): number => Math.floor(at / 2), (at: number): number => at]) {
      const split = splitModule(gm, (node) => part(calls.indexOf(node)));
      say(split.graph);
      for (const [name, child] of split.namedChildren()) say(`${name}: ${(child as GraphModule).graph}`);
      say(split.forward(numbers(3), full(1, 3)));
    }
  },
  test_pass_manager(say) {
    class Swap extends PassBase {
      readonly old: string;
      readonly new: string;
      constructor(before: string, after: string) {
        super();
        this.old = before;
        this.new = after;
      }
      call(gm: GraphModule): PassResult {
        let modified = false;
        for (const node of gm.graph.nodes) {
          if (node.op !== "call_function" || node.target !== this.old) continue;
          node.target = this.new;
          modified = true;
        }
        return { graphModule: gm, modified };
      }
    }
    const gm = symbolicTrace((x: Tensor) => torch.neg(torch.abs(x)));
    const reluExp = (): Swap[] => [new Swap("torch.relu", "torch.exp"), new Swap("torch.neg", "torch.relu")];
    for (const [list, steps] of [
      [[new Swap("torch.abs", "torch.relu")], 1],
      [reluExp(), 1],
      [reluExp(), 3],
    ] as const) {
      const res = new PassManager({ passes: list, steps }).run(deepCopy(gm));
      say(res.modified);
      say(res.graphModule.graph);
    }
    const pm = new PassManager({ passes: [new Swap("torch.neg", "torch.exp")], runChecksAfterEachPass: true });
    pm.addChecks((module) => {
      if (module.graph.nodes.some((it) => it.target === "torch.exp")) throw new Error("no exp");
    });
    say(message(() => pm.run(deepCopy(gm))).split(":")[0]);
    const [one, two] = [passResultWrapper(function first() {}), passResultWrapper(function second() {})];
    const ordered = new PassManager({ passes: [two, one], constraints: [thisBeforeThatPassConstraint(one, two)] });
    say(
      message(() => ordered.validateConstraints())
        .split(".")[0]
        ?.split(" at ")[0],
    );
    ordered.solveConstraints();
    say(ordered.passes.map((it) => (it as { readonly name: string }).name));
  },
};
