import { expect, it } from "vitest";
import { GraphTransformObserver } from "../../src/draw/drawer.ts";
import { Graph, GraphModule } from "../../src/index.ts";

function module(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.callFunction("torch.neg", [x]);
  graph.output(graph.callFunction("torch.relu", [x]));
  return GraphModule.ofGraph(graph);
}

/** The boxes that are yellow. */
function yellow(text = ""): string[] {
  const lines = text.split("\n").filter((line) => line.includes('fillcolor="yellow"'));
  return lines.map((line) => line.slice(0, line.indexOf(" ")));
}

it("notes what a pass makes and erases, and draws the graph before and after", () => {
  const drawings = new Map<string, string>();
  const gm = module();
  const observer = new GraphTransformObserver(gm, "clean", { log: (file, dot) => drawings.set(file, dot) });
  observer.applyGraphPass((graph) => {
    graph.eliminateDeadCode();
    const relu = graph.findNodes({ op: "call_function", target: "torch.relu" })[0];
    if (relu === undefined) return;
    const sin = graph.insertingAfter(relu, () => graph.callFunction("torch.sin", [relu]));
    relu.replaceAllUsesWith(sin, { filter: (user) => user !== sin });
  });
  expect([...observer.erasedNodes]).toEqual(["neg"]);
  expect([...observer.createdNodes]).toEqual(["sin"]);
  const [[input, before] = [], [output, after] = []] = [...drawings];
  expect(input).toMatch(/^pass_\d+_clean_input_graph\.dot$/);
  expect(output).toMatch(/^pass_\d+_clean_output_graph\.dot$/);
  expect(yellow(before)).toEqual(['"neg"']);
  expect(yellow(after)).toEqual(['"sin"']);
});

it("draws nothing where a pass changes nothing", () => {
  const files: string[] = [];
  const observer = new GraphTransformObserver(module(), "idle", { log: (file) => files.push(file) });
  expect(observer.applyGmPass(() => 7)).toBe(7);
  expect(files).toEqual([]);
});
