/** The packed tarball, installed into an empty project: what users get, and not what lies around in the repository. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { installedProject, type Project } from "./installed.ts";

/** The largest download that is allowed, in bytes after gzip: a growth beyond it is a decision, not an accident. */
const BUDGET = {
  tarball: 7_000_000,
  module: 3_800_000,
  glue: 20_000,
  gpu: 400_000,
  gpuGlue: 8_000,
  runtime: 1_000_000,
  runtimeScript: 18_000,
};

let home: Project;
let project: string;
let installed: string;
let tarball: string;

/** Runs a module in the project and returns what it prints. */
function run(source: string): string {
  return execFileSync("node", ["--input-type=module", "--eval", source], { cwd: project, encoding: "utf8" }).trim();
}

/** The size of an installed file after gzip. */
function gzipped(name: string): number {
  return gzipSync(readFileSync(join(installed, name))).length;
}

beforeAll(() => {
  home = installedProject();
  ({ folder: project, installed, tarball } = home);
}, 60_000);

afterAll(() => home[Symbol.dispose]());

it("brings the parser and what the build plugin is made of, and holds no sources", () => {
  const brought = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
  const plugin = ["@jridgewell", "@rolldown", "magic-string", "picomatch", "unplugin", "webpack-virtual-modules"];
  expect(brought.toSorted()).toEqual(["acorn", ...plugin, "tracefx"].toSorted());
  const names = readdirSync(installed, { recursive: true, encoding: "utf8" });
  expect(names).toEqual(expect.arrayContaining(["LICENSE-APACHE", "LICENSE-MIT", "README.md", "wasm/engine.d.ts"]));
  expect(names.filter((name) => /(?<!\.d)\.ts$|\.test\.|^src|\.map$/.test(name))).toEqual([]);
  // A map without its sources is of no use, and a comment that leads to none makes debuggers complain.
  const scripts = names.filter((name) => /^dist\/.*\.js$/.test(name));
  expect(
    scripts.filter((name) => readFileSync(join(installed, name), "utf8").match(/^\/\/# sourceMappingURL=/m) !== null),
  ).toEqual([]);
});

it("loads the engine in Node from where it is installed", () => {
  const version = run('import { engineVersion, init } from "tracefx"; await init(); console.log(engineVersion());');
  expect(version).toBe(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).version);
});

it("loads the engine from bytes, at once", () => {
  const source = `
    import { readFileSync } from "node:fs";
    import { engineVersion, initSync } from "tracefx";
    initSync(readFileSync(new URL(import.meta.resolve("tracefx/wasm/engine-simd.wasm"))));
    console.log(engineVersion());`;
  expect(run(source)).toMatch(/^\d+\.\d+\.\d+$/);
});

it("writes folders that run by themselves, and evaluates the code of graphs", () => {
  const source = `
    import { Graph, GraphModule, init, Parameter, tensor } from "tracefx";
    import { evaluateCode } from "tracefx/evaluate";
    import { toFolder } from "tracefx/node";
    await init();
    const graph = new Graph();
    graph.output(graph.callFunction("torch.nn.functional.prelu", [graph.placeholder("x"), graph.getAttr("w")]));
    const gm = new GraphModule({ w: new Parameter(tensor([0.5])) }, graph, "Net");
    await toFolder(gm, "exported");
    console.log(JSON.stringify(evaluateCode(gm)(tensor([-1, 2.5])).toArray()));`;
  expect(run(source)).toBe("[-0.5,2.5]");
  const again = `
    import { tensor } from "tracefx";
    import net from "./exported/module.mjs";
    console.log(net.className, JSON.stringify(net.forward(tensor([-1, 2.5])).toArray()));`;
  expect(run(again)).toBe("Net [-0.5,2.5]");
});

it("keeps its inside private", () => {
  const source = 'import("tracefx/dist/engine/engine.js").catch((error) => console.log(error.code));';
  expect(run(source)).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
});

it("offers the command", () => {
  const program = new URL("../fixtures/programs/digits_cnn/model.pt2", import.meta.url).pathname;
  const command = join(project, "node_modules/.bin/tracefx");
  const tell = (...args: string[]) => execFileSync(command, args, { encoding: "utf8" });
  expect(tell("--version")).toMatch(/^tracefx \d+\.\d+\.\d+\n$/);
  expect(tell("inspect", program)).toContain("All operators are supported.");
  expect(JSON.parse(tell("inspect", program, "--json")).nodes.length).toBe(33);
  expect(() => tell("inspect", "/no/such/file")).toThrow(/FX0703/);
});

it("is clean for publint, and for attw as a package of ES modules", () => {
  const bin = new URL("../../node_modules/.bin/", import.meta.url);
  const check = (name: string, ...args: string[]) =>
    execFileSync(new URL(name, bin).pathname, args, { encoding: "utf8" });
  expect(check("publint", tarball, "--strict")).toContain("All good!");
  // It fails with the problems that it finds.
  expect(() => check("attw", tarball, "--profile", "esm-only")).not.toThrow();
}, 60_000);

it("has the plugins of bundlers and linters, which load without any", () => {
  const source = `
    import { rewrite } from "tracefx/plugin";
    import { tracefx as vite } from "tracefx/plugin/vite";
    import linter from "tracefx/eslint-plugin";
    import { __tracefx } from "tracefx/checked";
    console.log(vite().name, linter.configs.recommended.name, __tracefx.$test(1, "if"), rewrite("if (a) b;").code.length > 0);`;
  expect(run(source)).toBe("tracefx tracefx/recommended 1 true");
});

it("has a loader for Node that looks at every condition of the program's own files", () => {
  const helper = "export const isLong = (x) => {\n  return x.sum() ? 1 : 2;\n};\n";
  const main = `
    import { symbolicTrace } from "tracefx";
    import { isLong } from "./isLong.mjs";
    const deciders = new Map([["a", isLong]]);
    try {
      console.log(symbolicTrace((x) => x.add([...deciders.values()][0](x))).code);
    } catch (error) {
      console.log(error.message);
    }`;
  writeFileSync(join(project, "isLong.mjs"), helper);
  writeFileSync(join(project, "main.mjs"), main);
  const said = execFileSync("node", ["--import", "tracefx/register", "main.mjs"], { cwd: project, encoding: "utf8" });
  expect(said).toMatch(/FX0801.*`\?:`\n.*isLong\.mjs:2:/);
});

it("asks Z3 where it is installed, says how to install it where it is not, and leaves no thread behind", () => {
  const source = `
    import { Z3 } from "tracefx/z3";
    try {
      const z3 = await Z3.load();
      console.log(await z3.ask("(declare-const s0 Int)(assert (= (* s0 s0) 49))(assert (< s0 0))(check-sat)(get-model)"));
      await z3.close();
    } catch (error) {
      console.log(error.message);
    }`;
  expect(run(source)).toMatch(/^FX0704: the package z3-solver is not there\n {2}help: npm install z3-solver/u);
  symlinkSync(new URL("../../node_modules/z3-solver", import.meta.url), join(project, "node_modules/z3-solver"));
  expect(run(source)).toMatch(/^sat\n[^]*\(- 7\)/u);
});

it("has types for a strict compiler with the library of its target", () => {
  const source = `
    import { F, nn, symbolicTrace, type Tensor, torch } from "tracefx";
    import { evaluateCode } from "tracefx/evaluate";
    import { toFolder } from "tracefx/node";
    class Net extends nn.Module {
      linear = new nn.Linear(2, 3);
      override forward(x: Tensor): Tensor {
        return F.relu(this.linear.forward(x)).mul(2).where(torch.ones(3).gt(0), 0);
      }
    }
    const gm = symbolicTrace(new Net());
    using y = gm.forward(torch.ones(1, 2)) as Tensor;
    const target: string = torch.add.target;
    console.log(y.shape, target, evaluateCode(gm), toFolder);`;
  writeFileSync(join(project, "user.ts"), source);
  const tsc = new URL("../../node_modules/.bin/tsc", import.meta.url).pathname;
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "user.ts"];
  expect(() => execFileSync(tsc, flags, { cwd: project, encoding: "utf8" })).not.toThrow();
});

it("stays within its budget of bytes", () => {
  expect(statSync(tarball).size).toBeLessThan(BUDGET.tarball);
  expect(gzipped("wasm/engine-simd.wasm")).toBeLessThan(BUDGET.module);
  expect(gzipped("wasm/engine.js")).toBeLessThan(BUDGET.glue);
  // What is fetched where a GPU is asked for.
  expect(gzipped("wasm/gpu.wasm")).toBeLessThan(BUDGET.gpu);
  expect(gzipped("wasm/gpu.js")).toBeLessThan(BUDGET.gpuGlue);
  // What runs saved plans.
  expect(gzipped("wasm/runtime-simd.wasm")).toBeLessThan(BUDGET.runtime);
  const script = join(installed, "dist/runtime/runtime.js");
  const { outputFiles } = buildSync({ entryPoints: [script], bundle: true, minify: true, format: "esm", write: false });
  expect(gzipSync(outputFiles[0]?.contents ?? "").length).toBeLessThan(BUDGET.runtimeScript);
});

it("runs saved plans without the engine", () => {
  const fixture = new URL("../fixtures/programs/cond_simple/", import.meta.url).pathname;
  const command = join(project, "node_modules/.bin/tracefx");
  const told = execFileSync(command, ["compile", `${fixture}model.pt2`, "cond.fxg"], {
    cwd: project,
    encoding: "utf8",
  });
  expect(told).toMatch(/ → cond\.fxg \(\d+ bytes, a plan of \d+ steps\)\n$/);
  const source = `
    import { load, tensor } from "tracefx/runtime";
    const model = await load("cond.fxg");
    const x = tensor([[-0.5, -0.25, 0], [0.25, 0.5, 0.75]]);
    console.log(String(model(x, x)));`;
  const whole = `
    import { load, tensor } from "tracefx";
    const model = (await load("cond.fxg")).module();
    const x = tensor([[-0.5, -0.25, 0], [0.25, 0.5, 0.75]]);
    console.log(String(model(x, x)));`;
  expect(run(source)).toMatch(/^tensor\(/);
  expect(run(source)).toBe(run(whole));
});
