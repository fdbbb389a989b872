/** The packed tarball, installed into an empty project: what users get, and not what lies around in the repository. */
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { COMPILED_AT_ONCE, sizes } from "../../scripts/sizes.mjs";
import { installedProject, type Project } from "./installed.ts";

/** The largest tarball that is allowed, in bytes: a growth beyond it is a decision, not an accident. */
const TARBALL = 7_300_000;

let home: Project;
let project: string;
let installed: string;
let tarball: string;

/** Runs a module in the project and returns what it prints. */
function run(source: string): string {
  return execFileSync("node", ["--input-type=module", "--eval", source], { cwd: project, encoding: "utf8" }).trim();
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
    scripts.filter(
      (name) => readFileSync(join(installed, name), "utf8").match(/^\/\/# sourceMappingURL=\S+\s*$(?![^])/m) !== null,
    ),
  ).toEqual([]);
});

it("loads the engine in Node from where it is installed", () => {
  const version = run('import { engineVersion, init } from "tracefx"; await init(); console.log(engineVersion());');
  expect(version).toBe(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).version);
});

it("is one package by all of its entry points, whose errors begin at the user's line", () => {
  const source = `
    import { FxError, Graph, nn, Tensor, torch } from "tracefx";
    import { Graph as ofGraph } from "tracefx/graph";
    import { Tensor as ofLoad } from "tracefx/load";
    import { Linear } from "tracefx/nn";
    import { Tensor as ofRuntime } from "tracefx/runtime";
    import { torch as ofTorch } from "tracefx/torch";
    import { FxError as ofTrace } from "tracefx/trace";
    console.log(Graph === ofGraph && Tensor === ofLoad && Tensor === ofRuntime && nn.Linear === Linear && torch === ofTorch && FxError === ofTrace);
    const wrong = () => torch.add("x");
    try { wrong(); } catch (error) { console.log(error.stack.split("\\n").find((line) => line.startsWith("    at"))); }`;
  expect(run(source)).toMatch(/^true\n {4}at wrong \(file:.*\[eval1\]:\d+:\d+\)$/);
});

it("finds the engine beside a bundle that left it behind", () => {
  writeFileSync(
    join(project, "user.js"),
    'import { engineVersion, init } from "tracefx"; await init(); console.log(engineVersion());',
  );
  const folder = join(project, "bundled");
  buildSync({
    entryPoints: [join(project, "user.js")],
    bundle: true,
    format: "esm",
    outdir: folder,
    external: ["node:*"],
  });
  copyFileSync(join(installed, "wasm/engine-simd.wasm"), join(folder, "engine-simd.wasm"));
  // Elsewhere, so that the installed package is not found.
  const told = execFileSync("node", [join(folder, "user.js")], { cwd: "/", encoding: "utf8" });
  expect(told).toMatch(/^\d+\.\d+\.\d+\n$/);
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

it("stays within its budget of bytes", async () => {
  expect(statSync(tarball).size).toBeLessThan(TARBALL);
  const rows = await sizes(project, installed);
  expect(rows.filter((row) => row.gzip > row.limit)).toEqual([]);
  const parts = rows.filter((row) => /-(edit|rare)\.wasm$/.test(row.name));
  expect(parts.length).toBe(3);
  expect(parts.filter((row) => row.raw > COMPILED_AT_ONCE)).toEqual([]);
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
