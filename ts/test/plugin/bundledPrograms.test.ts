/**
 * The examples and the README, each bundled with the package into one file, do what they do unbundled, and give no warning:
 * a bundle has no file names to tell the package from the user's code by, and a minified one no names either.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build as esbuild, transformSync } from "esbuild";
import { type Plugin, rollup } from "rollup";
import { build as vite } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import webpack from "webpack";
import { readmeCode } from "../readmeCode.ts";

/** webpack's own minimizer, whose options take names away unless it is told to keep them. */
const Minimizer = createRequire(import.meta.resolve("webpack"))("minimizer-webpack-plugin") as new (options: {
  readonly terserOptions: { readonly keep_classnames: boolean; readonly keep_fnames: boolean };
  readonly extractComments: boolean;
}) => webpack.WebpackPluginInstance;

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tracefx-bundled-"));
const main = join(folder, "main.js");
const renamed = join(folder, "renamed.js");

/** Where the examples find their data. */
const FIXTURES = `new URL(${JSON.stringify(new URL("../../../tests/fixtures/", import.meta.url).href)})`;

/** What each program prints. */
const expected = new Map<string, string>();

function javaScriptOf(code: string): string {
  return transformSync(code, { loader: "ts", target: "es2022" }).code.replaceAll(
    /(from|import) "(\.[^"]*)\.ts"/g,
    '$1 "$2.js"',
  );
}

/** What else the package is given in traced functions, and functions of the user's beside it. */
const CALLS = `
import { cond, exportProgram, F, init, map, nn, operator, slice, symbolicTrace, torch, Tracer, treeMap, tuple, wrap } from "tracefx";

await init();
class Block extends nn.Module {
  linear = new nn.Linear(2, 2);
  forward(x) {
    return F.relu(operator.mul(this.linear.forward(x), 2));
  }
}
class Net extends nn.Module {
  blocks = new nn.Sequential(new Block(), new nn.ReLU());
  forward(x) {
    const [head, ...others] = [F.relu(x), ...[1, 2].map((it) => operator.add(x, it))];
    const flags = { a: others.map((it) => { return F.gelu(it); }), method(it) { return F.silu(it); }, twice: (it) => operator.mul(it, 2) };
    const mapped = treeMap((it) => F.relu(it), [head, flags.method(x)]);
    return tuple(cond(true, (it) => F.relu(it), (it) => it, [x]), this.blocks.forward(flags.twice(x)), torch.ops.aten.relu(x), ...flags.a, ...mapped);
  }
}
const net = new Net();
net.registerForwardHook((_, __, output) => treeMap((it) => F.relu(it), output));
console.log(symbolicTrace(net).graph.nodes.length);
console.log(symbolicTrace((x) => operator.getitem(x, slice(x.size(0), null))).graph.nodes.length);
class Stack extends nn.Module {
  block = new Block();
  forward(x) {
    const { block } = this;
    return torch.stack([F.relu(block.forward(x)), map((it) => operator.neg(it), x)]);
  }
}
console.log(exportProgram(new Net(), [torch.ones(3, 2)]).graph.nodes.length);
console.log(exportProgram(new Stack(), [torch.ones(3, 2)]).graph.nodes.length);
class Quiet extends Tracer {
  told = [];
  warn(warning) {
    this.told.push(warning);
  }
}
const isTold = (fn) => {
  const tracer = new Quiet();
  symbolicTrace(fn, { tracer });
  return tracer.told.length > 0 ? 1 : 0;
};
// What decides is told, as long as nobody has read it.
const decide = (x) => (x === null ? 1 : 2);
const runs = (x) => operator.add(x, decide(x));
console.log(isTold((x) => runs(x)));
console.log(isTold((x) => [F.relu, decide].map((it) => it(x))));
console.log(isTold((x) => [F.relu, F.gelu].map((it) => it(x))));
`;

/** A program that names no parameter, since a minifier gives it another name. */
function withoutNames(code: string): string {
  const given = code.replace("{ concreteArgs: { flag: true } }", "{ concreteArgs: [PH, true] }");
  return given === code ? code : given.replace("import {", "import { PH,");
}

beforeAll(() => {
  const installed = join(folder, "node_modules/tracefx");
  mkdirSync(installed, { recursive: true });
  cpSync(here("../../package.json"), join(installed, "package.json"));
  symlinkSync(here("../../wasm"), join(installed, "wasm"));
  execFileSync(process.execPath, [here("../../../scripts/package.mjs"), installed]);
  symlinkSync(here("../../wasm"), join(folder, "wasm"));
  symlinkSync(here("../../../node_modules/acorn"), join(folder, "node_modules/acorn"));
  let previous = "";
  const add = (name: string, source: string, output: string): void => {
    // What the examples read is no part of a bundle, and where they stand is one.
    const moved = source.replace('new URL("../../tests/fixtures/", import.meta.url)', FIXTURES);
    const code = javaScriptOf(moved.replace('includes("debugging.ts")', 'includes("main.mjs")'));
    for (const [variant, text] of [
      ["", code],
      [".renamed", withoutNames(code)],
    ] as const) {
      // Modules that await something run one after the other where one needs the other.
      const after = previous === "" ? "" : `import "./${previous}${variant}.js";\n`;
      writeFileSync(join(folder, `${name}.title${variant}.js`), `${after}console.log("=== ${name}");`);
      writeFileSync(join(folder, `${name}${variant}.js`), `import "./${name}.title${variant}.js";\n${text}`);
    }
    previous = name;
    expected.set(name, output);
  };
  const examples = here("../../examples");
  for (const file of readdirSync(examples)) {
    if (!file.endsWith(".ts")) continue;
    const output = readFileSync(join(examples, "expected", `${file}.txt`), "utf8");
    add(file.slice(0, -".ts".length), readFileSync(join(examples, file), "utf8"), output);
  }
  const readme = readmeCode();
  add("README", readme.code, readme.output);
  add("calls", CALLS, "17\n4\n19\n12\n1\n1\n0\n");
  writeFileSync(main, `import "./${previous}.js";`);
  writeFileSync(renamed, `import "./${previous}.renamed.js";`);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

type Bundler = (output: string, isMinified: boolean) => Promise<void>;

const BUNDLERS: Record<string, Bundler> = {
  async esbuild(output, minify) {
    await esbuild({
      entryPoints: [minify ? renamed : main],
      outfile: output,
      bundle: true,
      minify,
      keepNames: minify,
      format: "esm",
      platform: "node",
      logLevel: "error",
    });
  },
  async rollup(output, isMinified) {
    const bundle = await rollup({ input: isMinified ? renamed : main, plugins: [resolved()], onLog: () => {} });
    await bundle.write({ file: output, format: "es", inlineDynamicImports: true });
    if (!isMinified) return;
    // Rollup leaves minifying to others.
    const { code } = transformSync(readFileSync(output, "utf8"), { minify: true, keepNames: true, format: "esm" });
    writeFileSync(output, code);
  },
  async vite(output, minify) {
    await vite({
      root: folder,
      configFile: false,
      logLevel: "error",
      ssr: { noExternal: true },
      build: {
        ssr: minify ? renamed : main,
        target: "es2022",
        outDir: dirname(output),
        emptyOutDir: false,
        minify,
        rollupOptions: { output: { entryFileNames: "main.mjs", codeSplitting: false, keepNames: minify } },
      },
    });
  },
  async webpack(output, minimize) {
    const compiler = webpack({
      mode: minimize ? "production" : "development",
      devtool: false,
      target: "node",
      entry: minimize ? renamed : main,
      optimization: {
        minimize,
        minimizer: [
          new Minimizer({ terserOptions: { keep_classnames: true, keep_fnames: true }, extractComments: false }),
        ],
      },
      experiments: { outputModule: true },
      output: { path: dirname(output), filename: "main.mjs", module: true },
    });
    if (compiler === null) throw new Error("webpack made no compiler");
    await new Promise<void>((resolve, reject) => {
      compiler.run((error, stats) => {
        if (error !== null || stats?.hasErrors()) reject(error ?? new Error(stats?.toString()));
        else compiler.close(() => resolve());
      });
    });
  },
};

/** Finds the two packages, which Rollup does not do by itself. */
function resolved(): Plugin {
  const paths = new Map([
    ["tracefx", join(folder, "node_modules/tracefx/dist/index.js")],
    ["acorn", join(folder, "node_modules/acorn/dist/acorn.mjs")],
  ]);
  return { name: "resolved", resolveId: (name) => paths.get(name) ?? null };
}

/**
 * What a program prints, with one word for every name: bundlers number names that stand twice in one file, and minifiers
 * give parameters others; so the widths of columns differ, too.
 */
function unnamed(text: string, isMinified: boolean): string {
  const names = text.replaceAll(/[A-Za-z_$][\w$]*/g, (name) =>
    isMinified ? "_" : name.replace(/[_$]?\d+(?=_|$)/g, ""),
  );
  return names.replaceAll(/ {2,}/g, "  ").replaceAll(/-{2,}/g, "--");
}

const builds = Object.keys(BUNDLERS).flatMap((name) => [
  { name, isMinified: false, how: "as it is" },
  { name, isMinified: true, how: "minified" },
]);

test.each(builds)(
  "built by $name, $how, they print what they do, and nothing is warned of",
  async ({ name, isMinified }) => {
    // Two folders down, from where the package has its WebAssembly two folders up.
    const output = join(folder, "out", `${name}-${isMinified}`, "main.mjs");
    await BUNDLERS[name]?.(output, isMinified);
    const { stdout, stderr } = spawnSync(process.execPath, [output], { encoding: "utf8" });
    // Where a bundle fails, Node prints its line, which is all of it.
    expect(stderr.replaceAll(/.{500,}/g, "…")).toBe("");
    const printed = new Map(
      stdout
        .split(/^=== /m)
        .slice(1)
        .map((text) => [text.slice(0, text.indexOf("\n")), text.slice(text.indexOf("\n") + 1)]),
    );
    const named = (all: Map<string, string>): string[][] =>
      Array.from(all, ([title, text]) => [title, unnamed(text, isMinified)]);
    expect(named(printed)).toEqual(named(expected));
  },
  120_000,
);
