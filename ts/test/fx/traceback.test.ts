/**
 * What is noted of where nodes come from, and what PyTorch 2.13 answers: `tests/oracle/gen_traceback.py` has the same programs.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  deepCopy,
  exportProgram,
  Graph,
  GraphModule,
  init,
  Interpreter,
  makeFx,
  Module,
  nn,
  type Node,
  operator,
  symbolicTrace,
  type Tensor,
  torch,
  traceback,
  Transformer,
} from "../../src/index.ts";
import { openProgram } from "../../src/export/exportedProgram.ts";
import type { Programs, Say } from "../ported/said.ts";

const { add } = operator;
const { annotate, NodeSource, preserveNodeMeta, setCurrentMeta } = traceback;

beforeAll(() => init());

class M extends Module {
  override forward(x: Tensor): Tensor {
    const y = annotate({ stage: 1 }, () => {
      const one = add(x, 1);
      const two = annotate({ tag: "inner", stage: 2 }, () => one.mul(2));
      return two.sin();
    });
    return y.cos();
  }
}

type Sources = readonly InstanceType<typeof NodeSource>[];

const ones = (): Tensor => torch.ones([1, 2]);
const customs = (gm: GraphModule): unknown =>
  Array.from(gm.graph.nodes, (it) => [it.name, it.meta.get("custom") ?? null]);
const sources = (gm: GraphModule): unknown =>
  Array.from(gm.graph.nodes, (it) => [it.name, ((it.meta.get("from_node") ?? []) as Sources).map(String)]);
const reluOf = (): [Graph, Node, Node] => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  return [graph, x, graph.callFunction("torch.relu", [x])];
};
const reluAndAdd = (): GraphModule => {
  const gm = symbolicTrace((x: Tensor) => add(torch.relu(x), 1));
  for (const it of gm.graph.nodes) it.meta.set("custom", { of: it.name });
  return gm;
};

const interpreted = (gm: GraphModule): GraphModule => makeFx((x: Tensor) => new Interpreter(gm).run(x))(ones());

const programs: Programs = {
  annotations_of_export(say) {
    say(customs(exportProgram(new M(), [ones()]).graphModule));
  },
  annotations_of_make_fx(say) {
    const model = new M();
    say(customs(makeFx((x: Tensor) => model.forward(x))(ones())));
    say(customs(preserveNodeMeta(() => makeFx((x: Tensor) => model.forward(x))(ones()))));
  },
  annotations_of_symbolic_trace(say) {
    say(customs(symbolicTrace(new M())));
    say(customs(preserveNodeMeta(() => symbolicTrace(new M()))));
  },
  annotated_functions(say) {
    const f = traceback.annotateFn({ pp_stage: 1 }, (x: Tensor) => add(x, 1));
    class N extends Module {
      override forward(x: Tensor): Tensor {
        return f(x).sin();
      }
    }
    say(customs(exportProgram(new N(), [ones()]).graphModule));
  },
  current_meta(say) {
    const meta = (): void => say(traceback.getCurrentMeta());
    say(traceback.hasPreservedNodeMeta());
    meta();
    preserveNodeMeta(() => {
      say(traceback.hasPreservedNodeMeta());
      traceback.setStackTrace(["line one\n", "line two\n"]);
      say(traceback.formatStack());
      meta();
      annotate({ a: 1 }, meta);
      preserveNodeMeta(() => {
        say(traceback.hasPreservedNodeMeta());
        traceback.setStackTrace(["another"]);
      }, false);
      meta();
      traceback.setStackTrace([]);
      say(traceback.formatStack());
      meta();
    });
    meta();
  },
  meta_of_a_node(say) {
    const [, x, node] = reluOf();
    setCurrentMeta(node, "a_pass", () => say(traceback.getCurrentMeta()));
    preserveNodeMeta(() => {
      setCurrentMeta(x, "a_pass", () => say(traceback.getCurrentMeta()));
      node.meta.set("custom", { k: 1 });
      setCurrentMeta(node, "a_pass", () => {
        const meta = traceback.getCurrentMeta();
        say([...meta.keys()].toSorted());
        say(meta.get("custom"));
        say(String((meta.get("from_node") as Sources)[0]));
      });
    });
    say(traceback.getCurrentReplayNode());
    traceback.setCurrentReplayNode(node, () => say(traceback.getCurrentReplayNode()?.name));
    say(traceback.getCurrentReplayNode());
  },
  node_sources(say) {
    const [graph, , node] = reluOf();
    const first = new NodeSource(node, "first", "create");
    say(String(first));
    say(first.toDict());
    say([first.name, first.target, first.passName]);
    node.meta.set("from_node", [first]);
    const second = new NodeSource(node, "second", ["replace", "create"]);
    say(String(second));
    say(second.toDict());
    say(second.equals(new NodeSource(node, "second", ["replace", "create"])));
    say(second.equals(first));
    say(NodeSource.fromDict(second.toDict())?.equals(second));
    const none = new NodeSource(null, "nothing");
    say(String(none));
    say(none.toDict());
    say(traceback.getGraphProvenanceJson(graph));
  },
  interpreters(say) {
    const gm = reluAndAdd();
    const traced = preserveNodeMeta(() => interpreted(gm));
    say(customs(traced));
    say(sources(traced));
    const again = interpreted(traced);
    say(customs(again));
    say(sources(again));
    const kept = preserveNodeMeta(() => interpreted(traced));
    say(sources(kept));
    say(traceback.getGraphProvenanceJson(kept.graph));
  },
  transformers(say) {
    const transformed = new Transformer(reluAndAdd()).transform();
    say(customs(transformed));
    say(sources(transformed));
  },
  copies(say) {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x));
    for (const it of gm.graph.nodes) it.meta.set("from_node", [new NodeSource(it, "made", "create")]);
    say(sources(deepCopy(gm)));
    const graph = new Graph();
    graph.output(graph.graphCopy(gm.graph, new Map()) ?? null);
    say(sources(new GraphModule({}, graph)));
  },
  programs(say) {
    class N extends Module {
      linear = new nn.Linear(2, 2);
      override forward(x: Tensor): Tensor {
        return this.linear(x).relu();
      }
    }
    const program = exportProgram(new N(), [ones()]);
    say(sources(program.graphModule));
    say(sources(program.unlift()));
    say(sources(program.runDecompositions().graphModule));
  },
};

/** A line as `gen_traceback.py` writes it: graphs by the order in which they are said. */
function lineOf(it: unknown, graphs: Map<string, number>): string {
  const number = (id: string): string => {
    if (!graphs.has(id)) graphs.set(id, graphs.size);
    return String(graphs.get(id));
  };
  const text = (value: unknown): string => {
    if (typeof value === "string")
      return value.replaceAll(/graph_id=(\d+)/g, (_, id: string) => `graph_id=${number(id)}`);
    if (value === null || value === undefined) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (Array.isArray(value)) return `[${value.map(text).join(", ")}]`;
    if (typeof value !== "object") return String(value);
    const entries = value instanceof Map ? [...value] : Object.entries(value);
    return `{${entries.map(([key, item]) => `${key}: ${key === "graph_id" && item !== -1 ? number(String(item)) : text(item)}`).join(", ")}}`;
  };
  return text(it);
}

const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/fx/traceback.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

/** Where lines differ: targets are names, and programs say less of what is no call. */
function expected(name: string, line: string): string {
  if (name === "programs") {
    const ofDecomposed = line.includes("PropagateUnbackedSymInts");
    const others = /\[(p_\w+|output), \[[^[\]]*\]\]/g;
    return line
      .replaceAll("[_guards_fn, []], ", "")
      .replaceAll(others, (all, it) => (ofDecomposed ? `[${it}, []]` : all));
  }
  return line
    .replaceAll(/<built-in method relu of type object at 0x\w+>/g, "torch.relu")
    .replaceAll("<built-in function add>", "operator.add")
    .replaceAll("target: aten.", "target: torch.ops.aten.");
}

describe("as torch.fx.traceback answers:", () => {
  test.each(Object.keys(recorded))("%s", (name) => {
    const graphs = new Map<string, number>();
    const said: string[] = [];
    const say: Say = (it) => void said.push(lineOf(it, graphs));
    programs[name]?.(say);
    expect(said).toEqual(recorded[name]?.map((it) => expected(name, it)));
  });
});

test("where nodes come from is kept in files", () => {
  class N extends Module {
    override forward(x: Tensor): Tensor {
      return torch.softmax(x, 1);
    }
  }
  const program = exportProgram(new N(), [ones()]).runDecompositions();
  const again = openProgram(program.toFxg(), {});
  const [before, after] = [program, again].map((it) => traceback.getGraphProvenanceJson(it.graph));
  expect(after).toEqual(before);
  expect(JSON.stringify(after)).toContain('"name":"softmax"');
});
