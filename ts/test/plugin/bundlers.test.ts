import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build as esbuild } from "esbuild";
import { rollup } from "rollup";
import { build as vite } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import webpack from "webpack";
import type { PluginOptions } from "../../src/plugin/plugin.ts";
import { tracefx as forEsbuild } from "../../src/plugin/esbuild.ts";
import { tracefx as forRollup } from "../../src/plugin/rollup.ts";
import { tracefx as forVite } from "../../src/plugin/vite.ts";
import { tracefx as forWebpack } from "../../src/plugin/webpack.ts";
import { MODEL, TYPED_MODEL } from "./model.ts";

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "tracefx-plugin-"));
/** The package, in one file that all bundles import. */
const runtime = join(folder, "node_modules/tracefx/dist/tracefx.mjs");
const model = join(folder, "model.js");
const typed = join(folder, "model.ts");

beforeAll(async () => {
  const contents = `
    export { PH } from ${JSON.stringify(here("../../src/trace/placeholder.ts"))};
    export { symbolicTrace } from ${JSON.stringify(here("../../src/trace/tracer.ts"))};
    export { __tracefx } from ${JSON.stringify(here("../../src/trace/checked.ts"))};`;
  const stdin = { contents, resolveDir: here(".") };
  await esbuild({ stdin, bundle: true, platform: "node", format: "esm", outfile: runtime, logLevel: "error" });
  writeFileSync(model, MODEL);
  writeFileSync(typed, TYPED_MODEL);
});

afterAll(() => rmSync(folder, { recursive: true }));

type Bundler = (input: string, output: string, options: PluginOptions) => Promise<void>;

const BUNDLERS: Record<string, Bundler> = {
  async vite(input, output, options) {
    await vite({
      root: folder,
      configFile: false,
      logLevel: "error",
      plugins: [forVite(options)],
      build: {
        ssr: input,
        outDir: join(output, ".."),
        emptyOutDir: false,
        minify: false,
        sourcemap: true,
        rollupOptions: {
          external: /^tracefx/,
          output: { entryFileNames: output.slice(folder.length + 1), paths: () => runtime },
        },
      },
    });
  },
  async rollup(input, output, options) {
    const bundle = await rollup({ input, external: /^tracefx/, plugins: [forRollup(options)] });
    await bundle.write({ file: output, format: "es", sourcemap: true, paths: () => runtime });
  },
  async esbuild(input, output, options) {
    await esbuild({
      entryPoints: [input],
      outfile: output,
      bundle: true,
      minify: options.operators !== true,
      sourcemap: true,
      format: "esm",
      platform: "node",
      external: [runtime],
      alias: { "tracefx/checked": runtime, tracefx: runtime },
      plugins: [forEsbuild(options)],
    });
  },
  async webpack(input, output, options) {
    const external = { tracefx: runtime, "tracefx/checked": runtime };
    const compiler = webpack({
      mode: "production",
      devtool: "source-map",
      target: "node",
      entry: input,
      externalsType: "module",
      externals: external,
      experiments: { outputModule: true },
      output: { path: folder, filename: output.slice(folder.length + 1), module: true },
      plugins: [forWebpack(options)],
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

/** What the traces of the bundled model give. */
async function run(name: string, input: string, options: PluginOptions = {}): Promise<Record<string, string>> {
  const output = join(folder, `${name}.mjs`);
  await BUNDLERS[name]?.(input, output, options);
  return JSON.parse(execFileSync(process.execPath, ["--enable-source-maps", output], { encoding: "utf8" }));
}

const GRAPH = `graph():
    %x : [num_users=2] = placeholder[target=x]
    %y : [num_users=1] = placeholder[target=y]
    %neg : [num_users=1] = call_function[target=operator.neg](args = (%x,), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (2, %y), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%neg, %mul), kwargs = {})
    %pow_1 : [num_users=2] = call_function[target=operator.pow](args = (%add, 2), kwargs = {})
    %lt : [num_users=1] = call_function[target=operator.lt](args = (%pow_1, %x), kwargs = {})
    return [pow_1, lt, 3, 'a1']`;

/** The graph with the names that the parameters had before the model was minified. */
function unminified(graph: string): string {
  const [x = "", y = ""] = Array.from(graph.matchAll(/target=(\w+)\]$/gm), ([, name]) => name);
  return graph.replaceAll(new RegExp(`\\b${x}\\b`, "g"), "x").replaceAll(new RegExp(`\\b${y}\\b`, "g"), "y");
}

describe.each(Object.keys(BUNDLERS))("a model that %s builds", (name) => {
  it("refuses tests on traced values, and records operators", async () => {
    const told = await run(name, name === "rollup" || name === "webpack" ? model : typed, { operators: true });
    expect(told["chosen"]).toMatch(/TraceControlFlow: .*as in `if`/);
    // The line of the user's file, through the maps of all steps.
    expect(told["chosen"]).toMatch(/model\.[jt]s:5:/);
    expect(told["same"]).toMatch(/TraceControlFlow: .*`===`/);
    expect(told["absent"]).toMatch(/TraceControlFlow: .*`===` asks whether a traced value is there/);
    expect(unminified(told["computed"] ?? "")).toBe(GRAPH);
    expect(told["ordinary"]).toMatch(/return \w+$/);
  }, 60_000);

  it("refuses operators where they are not asked for", async () => {
    const told = await run(name, name === "rollup" || name === "webpack" ? model : typed);
    expect(told["chosen"]).toMatch(/TraceControlFlow: .*as in `if`/);
    expect(told["computed"]).toMatch(/TraceCoercion/);
  }, 60_000);
});
