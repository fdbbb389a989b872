/**
 * Makes modules of JavaScript, and says what comes of tracing them.
 *
 * @module
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInThisContext } from "node:vm";
import { vi } from "vitest";
import { Dim, exportProgram, FxError, nn, Tensor, torch } from "../../../src/index.ts";
import { rewrite } from "../../../src/plugin/rewrite.ts";
import { __tracefx } from "../../../src/trace/checked.ts";
import { symbolicTrace, Tracer } from "../../../src/trace/tracer.ts";

/** The class of a module. */
export type Make = new () => nn.Module;

/** How a file of modules is loaded: as it is, from a file that nobody can read, or as the build plugin rewrites it. */
export type Loading = "readable" | "unreadable" | "instrumented";

const folder = mkdtempSync(join(tmpdir(), "tracefx-detours-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** Whether the host is one that gives the text of no script, as browsers are. */
let isHidden = false;
const { getBuiltinModule } = process;
vi.spyOn(process, "getBuiltinModule").mockImplementation((name: string) =>
  isHidden && name === "node:inspector" ? undefined : (getBuiltinModule.call(process, name) as never),
);

/** The classes of the modules of a file. */
export function load(sources: readonly string[], loading: Loading): Make[] {
  isHidden = loading === "unreadable";
  const code = `"use strict"; module.exports = [\n${sources.join(",\n")}\n];`;
  const checked = loading === "instrumented" ? (rewrite(code, { format: "commonjs" })?.code ?? code) : code;
  const written = `(function (module, require, nn, torch, Tensor) {${checked}\n})`;
  const filename = loading === "unreadable" ? `detours-${files++}.js` : join(folder, `detours-${files++}.js`);
  if (loading !== "unreadable") writeFileSync(filename, written);
  const module: { exports?: unknown } = {};
  const run = runInThisContext(written, { filename }) as (...given: unknown[]) => void;
  run(module, () => ({ __tracefx }), nn, torch, Tensor);
  return module.exports as Make[];
}

class Listening extends Tracer {
  readonly warnings: string[] = [];
  protected override warn({ message }: FxError): void {
    this.warnings.push(message);
  }
}

/** What comes of a trace. */
export interface Outcome {
  readonly kind: "refused" | "told" | "right" | "wrong";
  readonly text: string;
}

const INPUTS = [
  [4, 3, 1],
  [7, 3, 1],
  [4, 3, -1],
  [4, 3, 0],
] as const;

/** Traces a module, and compares its graph with it. */
export function traceOutcome(Net: Make, checkSources: true | "strict"): Outcome {
  const tracer = new Listening();
  try {
    const net = new Net();
    const graph = symbolicTrace(net, { tracer, checkSources });
    if (tracer.warnings.length > 0) return { kind: "told", text: tracer.warnings.join("\n") };
    return compare(net, graph, INPUTS);
  } catch (error) {
    if (error instanceof FxError) return { kind: "refused", text: error.message };
    throw error;
  }
}

/** Exports a module, and compares its program with it. */
export function exportOutcome(Net: Make, checkSources: true | "strict", isDynamic: boolean): Outcome {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  try {
    const net = new Net();
    const shapes = isDynamic ? { dynamicShapes: { x: { 0: Dim.AUTO } } } : {};
    const program = exportProgram(net, [torch.ones(4, 3)], {}, { checkSources, verify: false, ...shapes });
    if (warn.mock.calls.length > 0) return { kind: "told", text: warn.mock.calls.flat().join("\n") };
    using run = program.module();
    return compare(net, { call: (x) => run(x) }, isDynamic ? INPUTS : INPUTS.filter(([n]) => n === 4));
  } catch (error) {
    if (error instanceof FxError) return { kind: "refused", text: error.message };
    throw error;
  } finally {
    warn.mockRestore();
  }
}

function compare(
  net: nn.Module,
  made: { call(x: Tensor): unknown },
  inputs: readonly (readonly [number, number, number])[],
): Outcome {
  for (const [n, m, element] of inputs) {
    const x = torch.full([n, m], element, { dtype: "float32" });
    let got: unknown;
    try {
      got = made.call(x);
    } catch (error) {
      // The program says that it was not made for these.
      if (error instanceof FxError && /^FX060[0-9]/.test(error.code) && n !== 4) continue;
      throw error;
    }
    if (!torch.equal(got as Tensor, net.call(x) as Tensor))
      return { kind: "wrong", text: `for ${n} by ${m} of ${element}` };
  }
  return { kind: "right", text: "" };
}
