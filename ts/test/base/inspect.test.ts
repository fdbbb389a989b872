/** What consoles show. */
import { inspect } from "node:util";
import { afterEach, beforeAll, expect, test } from "vitest";
import { exportProgram, init, nn, type Node, showInConsole, symbolicTrace, torch } from "../../src/index.ts";

beforeAll(() => init());

interface Page {
  devtoolsFormatters?: { header(value: unknown): readonly unknown[] | null; hasBody(value: unknown): boolean }[];
}

afterEach(() => void delete (globalThis as Page).devtoolsFormatters);

test("Node's console shows the text that PyTorch prints", () => {
  const net = new nn.ReLU();
  const gm = symbolicTrace(net);
  const { graph } = gm;
  expect(inspect(graph)).toBe(String(graph));
  expect(inspect(gm)).toBe(String(gm));
  expect(inspect(net)).toBe("ReLU()");
  expect(inspect(graph.nodes)).toBe("NodeList(3) [input_1, relu, output]");
  expect(inspect(torch.ones([2]))).toBe("tensor([1., 1.])");
  const program = exportProgram(net, [torch.ones([2])]);
  expect(inspect(program)).toBe(String(program));
  expect(inspect(program.graphSignature)).toBe(String(program.graphSignature));
  program.dispose();
  expect(inspect(program)).toBe("ExportedProgram(disposed)");
});

test("containers are shown, alone and within other values", () => {
  const seq = new nn.Sequential(new nn.ReLU());
  expect(inspect(seq)).toBe("Sequential(\n  (0): ReLU()\n)");
  const list = new nn.ModuleList([new nn.ReLU()]);
  const parameters = new nn.ParameterList([torch.ones([2])]);
  expect(inspect({ list })).toContain("ModuleList(\n");
  expect(inspect([parameters, 1])).toContain("ParameterList(");
  expect(inspect(new Error("x", { cause: seq }))).toContain("(0): ReLU()");
  class Own extends nn.Module {
    at(): number {
      return 1;
    }
  }
  expect(inspect(new Own())).toBe("Own()");
});

test("a node shows its line, and within other values its name", () => {
  const { graph } = symbolicTrace(new nn.ReLU());
  const relu = graph.find("relu") as Node;
  expect(inspect(relu)).toBe(
    "%relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%input_1,), kwargs = {inplace: False})",
  );
  expect(inspect([relu, graph])).toBe("[ relu, Graph(3 nodes) ]");
  expect(inspect(relu.allInputNodes)).toBe("[ input_1 ]");
  expect(inspect(new Set([relu]))).toBe("Set(1) { relu }");
  graph.outputNode()?.replaceInputWith(relu, graph.nodes.at(0) as Node);
  graph.eraseNode(relu);
  expect(inspect(relu)).toContain("%relu");
});

test("browsers are shown nothing else", () => {
  showInConsole();
  const { devtoolsFormatters: formatters = [] } = globalThis as Page;
  class Styled {
    [inspect.custom](_: number, options: { stylize(text: string, style: string): string }): string {
      return options.stylize("styled", "special");
    }
  }
  class Own extends nn.Module {
    [inspect.custom](): string {
      throw new Error("not asked for");
    }
  }
  const closed = new Proxy({}, { get: () => expect.unreachable() });
  const { graph } = symbolicTrace(new nn.ReLU());
  const prototypes = [graph, graph.nodes, graph.nodes.at(0), new nn.ReLU(), torch.ones([1])].map(
    (it) => Object.getPrototypeOf(it) as unknown,
  );
  for (const other of [new Styled(), new Own(), closed, { [inspect.custom]: "text" }, ...prototypes]) {
    expect(formatters[0]?.header(other)).toBeNull();
  }
});

test("browsers that allow it show the same", () => {
  showInConsole();
  showInConsole();
  const { devtoolsFormatters: formatters = [] } = globalThis as Page;
  expect(formatters).toHaveLength(1);
  const { graph } = symbolicTrace(new nn.ReLU());
  expect(formatters[0]?.header(graph)?.[2]).toBe(String(graph));
  expect(formatters[0]?.header(new nn.ReLU())?.[2]).toBe("ReLU()");
  for (const other of [1, "text", null, undefined, {}, () => 1]) expect(formatters[0]?.header(other)).toBeNull();
  expect(formatters[0]?.hasBody(graph)).toBe(false);
});
