import { describe, expect, test, vi } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { formatReadable } from "../../src/graph/readable.ts";
import { SymExpr, TensorMeta } from "../../src/graph/val.ts";
import { device, LayoutArg } from "../../src/base/values.ts";

function meta(...sizes: (number | SymExpr)[]): TensorMeta {
  return new TensorMeta({
    dtype: "float32",
    sizes,
    strides: sizes.map((_, at) => (at === 0 ? 4 : 1)),
    storageOffset: 0,
    device: device("cuda:1"),
    layout: new LayoutArg("strided"),
    requiresGrad: false,
  });
}

const s77 = new SymExpr("Symbol('s77', positive=True, integer=True)");

function example(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x", "torch.Tensor");
  x.meta.set("val", meta(s77, 4));
  const stack =
    'File "/src/model.ts", line 3, in forward\n  return a(x)\nFile "/src/layer.ts", line 7, in a\n  return x.relu()\n';
  const relu = graph.callFunction("torch.relu", [x]);
  relu.meta.set("val", meta(s77, 4)).set("note", { k: 1 });
  relu.stackTrace = stack;
  const size = graph.callFunction("torch.ops.aten.sym_size.int", [relu, 0]);
  size.meta.set("val", new SymExpr("Mul(Integer(2), Symbol('s77'))"));
  size.stackTrace = stack;
  const neg = graph.callFunction("torch.neg", [relu]);
  neg.meta.set("custom", { stage: 1, long: "x".repeat(50) }).set("autograd_backward", true);
  neg.stackTrace = stack;
  graph.output([neg, size], "list");
  const gm = GraphModule.ofGraph(graph);
  const inner = new Graph();
  inner.output(inner.callModule("leaf", [inner.placeholder("y")]));
  gm.addSubmodule("inner", GraphModule.ofGraph(inner, "Inner"));
  gm.addSubmodule("0", GraphModule.ofGraph(new Graph()));
  return gm;
}

/** Escape sequences of terminals. */
const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");

describe("CG-08: readable modules", () => {
  test("say shapes, places where they change, and the modules inside", () => {
    const text = formatReadable(example());
    expect(text).toMatchInlineSnapshot(`
      "class GraphModule extends nn.Module {
        forward(x /* f32[s77, 4] */) /* list */ {
          // File: /src/layer.ts:7 in a, code: return x.relu()
          let relu /* f32[s77, 4] */ = torch.relu(x);  x = null;
          let sym_size_int /* Sym(2*s77) */ = torch.ops.aten.sym_size.int(relu, 0);

          // Annotation: {stage: 1, long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...} Backward of forward node: File: /src/layer.ts:7 in a, code: return x.relu()
          let neg = torch.neg(relu);  relu = null;
          return [neg, sym_size_int];
        }

        inner = class extends nn.Module {
          forward(y) {
            // No stacktrace found for following nodes
            let leaf = this.leaf.forward(y);  y = null;
            return leaf;
          }
        };

        ["0"] = class extends nn.Module {
          forward() {
            return null;
          }
        };
      }
      "
    `);
    expect(text.split("\n").filter((line) => /\s$/.test(line))).toEqual([]);
  });

  test.each([
    ["at Proxy.forward (file:///src/net.ts:8:52)", "file:///src/net.ts:8 in Proxy.forward"],
    ["at new Net (C:\\src\\net.ts:8:52)\nat other (a.ts:1:1)", "C:\\src\\net.ts:8 in new Net"],
    ["at file:///src/net.ts:8:52", "file:///src/net.ts:8 in <anonymous>"],
    ["forward@https://host:8080/net.js:8:52", "https://host:8080/net.js:8 in forward"],
  ])("say the place of a stack of JavaScript: %s", (stack, place) => {
    const graph = new Graph();
    graph.placeholder("x");
    graph.callFunction("torch.relu", [...graph.nodes]).meta.set("stack_trace", stack);
    expect(formatReadable(GraphModule.ofGraph(graph))).toContain(`// File: ${place}\n`);
  });

  test("say strides, devices and other notes, and spread the head, on request", () => {
    const text = formatReadable(example(), {
      includeStride: true,
      includeDevice: true,
      expandedDef: true,
      additionalMeta: ["note", "none"],
    });
    expect(text.split("\n").slice(0, 8).join("\n")).toMatchInlineSnapshot(`
      "class GraphModule extends nn.Module {
        forward(
          x /* f32[s77, 4][4, 1]cuda:1 */,
        ) /* list */ {
          // note: {"k":1} File: /src/layer.ts:7 in a, code: return x.relu()
          let relu /* f32[s77, 4][4, 1]cuda:1 */ = torch.relu(x);  x = null;

          // File: /src/layer.ts:7 in a, code: return x.relu()"
    `);
  });

  test("are coloured on request, and otherwise the same", () => {
    const plain = formatReadable(example(), { includeStride: true, includeDevice: true });
    const colored = formatReadable(example(), { includeStride: true, includeDevice: true, colored: true });
    expect(colored).toContain("\u001b[31mf32\u001b[0m\u001b[34m[s77, 4]\u001b[0m\u001b[34m\u001b[2m[4, 1]\u001b[0m");
    expect(colored.replaceAll(ESCAPES, "")).toBe(plain);
  });

  test("are printed and given back", () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
    const text = example().printReadable();
    expect(log.mock.calls).toEqual([[text]]);
    expect(text).toBe(formatReadable(example()));
    log.mockRestore();
  });

  test("have legal names whatever they are called", () => {
    expect(formatReadable(GraphModule.ofGraph(new Graph(), "my class"))).toContain(
      "class my_class /* my class */ extends",
    );
    expect(formatReadable(GraphModule.ofGraph(new Graph(), "class"))).toContain("class class_1 /* class */ extends");
  });
});
