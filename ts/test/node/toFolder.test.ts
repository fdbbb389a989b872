import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "acorn";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineFunction } from "../../src/functions/table.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { toFolder } from "../../src/node/toFolder.ts";
import { sourceOf } from "../../src/save/source.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { PH } from "../../src/trace/placeholder.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { plusOne, sum } from "../fx/functions.ts";

const add = defineFunction("my.folder-add", (a: Tensor, b: Tensor) => sum(a, b));

class FolderShift extends Module {
  by = [1, { deep: null }];
  weight = new Parameter(tensor([1.5, 2]), { requiresGrad: false });

  constructor() {
    super();
    this.registerBuffer("count", tensor([3]), { persistent: false });
  }

  override forward(x: Tensor): unknown {
    return plusOne(sum(x, this.weight));
  }
}

markBuiltin({ FolderShift });

class Root extends Module {
  shift = new FolderShift();
  again = this.shift;
  tied = new Parameter(tensor([1, 2], { dtype: "float32" }));
  same = this.tied;
  inner = innerModule();
}

function innerModule(): GraphModule {
  const graph = new Graph();
  graph.output(graph.callFunction(add, [graph.placeholder("y"), graph.getAttr("odd name.w")]));
  const holder = new Module();
  holder.attributes.set("odd name", { kind: "module", module: new Module() });
  holder.getSubmodule("odd name").registerBuffer("w", tensor([5, 5], { dtype: "float32" }));
  return new GraphModule(holder, graph, "Inner one");
}

function original(): GraphModule {
  const graph = new Graph();
  const shifted = graph.callModule("again", [graph.callModule("shift", [graph.placeholder("x")])]);
  const tied = graph.callFunction(add, [graph.getAttr("tied"), graph.getAttr("same")]);
  graph.output([graph.callModule("inner", [shifted]), tied]);
  return new GraphModule(new Root(), graph, "Net").eval();
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tracefx-folder-"));
});
afterAll(() => rm(folder, { recursive: true }));

function lists(outputs: unknown): unknown {
  return (outputs as Tensor[]).map((it) => it.toArray());
}

describe("GM-09: a folder", () => {
  test("runs by itself and gives the same", async () => {
    const gm = original();
    await toFolder(gm, join(folder, "net"));
    expect((await readdir(join(folder, "net"))).toSorted()).toEqual(["module.mjs", "module.safetensors"]);
    const { default: again } = (await import(join(folder, "net/module.mjs"))) as { default: Module };
    const x = tensor([1, 1], { dtype: "float32" });
    expect(lists(again.forward(...([x] as never[])))).toEqual(lists(gm.forward(x)));
    expect([again.className, again.training]).toEqual(["Net", false]);
    expect(again.getSubmodule("again") === again.getSubmodule("shift")).toBe(true);
    expect(again.getParameter("same") === again.getParameter("tied")).toBe(true);
    expect(again.getParameter("shift.weight").requiresGrad).toBe(false);
    expect(again.getSubmodule("shift").attributes.get("count")).toMatchObject({ kind: "buffer", persistent: false });
    expect(Reflect.get(again.getSubmodule("shift"), "by")).toEqual([1, { deep: null }]);
  });

  test("takes nested inputs where the graph does", async () => {
    const gm = symbolicTrace(
      (t: { a: Tensor }, { more = null }: { more?: Tensor | null } = {}) => ({ out: add(t.a, more as Tensor) }),
      {
        concreteArgs: { t: { a: PH } },
      },
    );
    await toFolder(gm, folder, { name: "nested" });
    const { default: again } = (await import(join(folder, "nested.mjs"))) as { default: Module };
    const x = tensor([1, 1], { dtype: "float32" });
    const { out } = again.forward(...([{ a: x }, { more: x }] as never[])) as { out: Tensor };
    expect(out.toArray()).toEqual([2, 2]);
  });

  test("is readable code", async () => {
    await toFolder(original(), folder, { name: "readable" });
    const code = await readFile(join(folder, "readable.mjs"), "utf8");
    expect(code).toContain("class Net extends Module {");
    expect(code).toContain("    forward(x) {\n      let shift = this.shift.forward(x);");
    expect(code).toContain('const shift_weight = new Parameter(tensors.get("shift.weight"), { requiresGrad: false });');
    expect(code).toContain('fields: {"by":[1,{"deep":null}]}');
  });

  test("has a name that is the name of a file", async () => {
    for (const name of ["", "../up", "a/b", "a.b"]) {
      await expect(toFolder(original(), folder, { name })).rejects.toThrow(
        expect.objectContaining({ kind: "InvalidOption" }),
      );
    }
  });
});

test("no name ends a string or becomes code", () => {
  for (const name of [
    '"; pwned(); "',
    "\u2028pwned()",
    "*/ pwned() /*",
    "__proto__",
    "constructor",
    "${pwned()}",
    "\\",
  ]) {
    const gm = new GraphModule({}, new Graph(), name);
    gm.attributes.set(name, { kind: "buffer", tensor: tensor([1]) });
    const shift = new FolderShift();
    shift.by = [1, { [name]: null } as { deep: null }];
    gm.attributes.set(`${name}.m`, { kind: "module", module: shift });
    gm.graph.output(gm.graph.callFunction(name, [gm.graph.getAttr(name)]));
    const { code } = sourceOf(gm, "./state.safetensors");
    const seen = new Set<string>();
    const visit = (it: unknown): void => {
      if (typeof it !== "object" || it === null) return;
      const { type, name: identifier } = it as { type?: unknown; name?: unknown };
      if (type === "Identifier") seen.add(String(identifier));
      for (const child of Object.values(it)) visit(child);
    };
    visit(parse(code, { ecmaVersion: "latest", sourceType: "module" }));
    expect([...seen]).not.toContain("pwned");
  }
});

describe("what cannot be written is refused by name", () => {
  test.each<[string, (gm: GraphModule) => unknown]>([
    ["`shift` has hooks", (gm) => gm.getSubmodule("shift").registerForwardHook(() => undefined)],
    ["`shift` has the property `fn`", (gm) => Object.assign(gm.getSubmodule("shift"), { fn: () => 1 })],
    ["`mine` is of the class Mine", (gm) => gm.addSubmodule("mine", new (class Mine extends Module {})())],
    [" holds itself", (gm) => gm.addSubmodule("self", gm)],
  ])("%s", (text, change) => {
    const gm = original();
    change(gm);
    expect(() => sourceOf(gm, "./state.safetensors")).toThrow(text);
  });
});
