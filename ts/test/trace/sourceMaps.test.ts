/**
 * Errors and nodes name the user's line where Node follows source maps, those of the package as well: its frames are then in
 * files that are not its own.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tracefx-maps-"));

/** The marks stand at the lines that must be told, in messages or where the stack of an error begins. */
const PROGRAM = `
import { exportProgram, F, init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

interface Unneeded { readonly takes: "lines"; readonly when: "it is compiled" }

await init();
const told: Record<string, unknown> = {};
function tell(name: string, run: () => unknown): void {
  try {
    told[name] = run();
  } catch (error) {
    const { message, stack = "" } = error as Error;
    if (/\\.ts:\\d/.test(message)) told[name] = message;
    told[name + ", stack"] = stack.slice(stack.indexOf(message) + message.length).trim().split("\\n")[0];
  }
}
class Net extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.add(x.length); // length of an export
  }
}
tell("length", () => symbolicTrace((x: Tensor) => {
  return x.length; // length
}));
tell("text", () => symbolicTrace((x: Tensor) => {
  return \`\${x}\`; // text
}));
tell("condition", () => symbolicTrace((x: Tensor) => { // condition, stack
  const y = x.relu();
  return y ? 1 : 2; // condition
}));
tell("node", () => symbolicTrace((x: Tensor) => {
  return F.relu(x); // node
}).graph.nodes.toArray()[1]?.meta.get("stack_trace"));
tell("items", () => symbolicTrace((x: Tensor) => {
  const [first] = x; // items
  return first;
}).graph.nodes.toArray()[1]?.meta.get("stack_trace"));
class Texts extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.add(String(x).length); // text of an export
  }
}
tell("text of an export", () => exportProgram(new Texts(), [torch.ones(2)]));
class Adds extends nn.Module {
  override forward(x: Tensor): Tensor {
    return torch.add(x, 1); // node of an export
  }
}
tell("node of an export", () => exportProgram(new Adds(), [torch.ones(2)]).graph.nodes.toArray()[1]?.meta.get("stack_trace"));
tell("function", () => {
  return torch.add(torch.ones(2), torch.ones(3)); // function
});
tell("method", () => {
  return torch.ones(2).matmul(torch.ones(3)); // method
});
tell("layer", () => {
  return new nn.Linear(2, 3).forward(torch.ones(4)); // layer
});
console.log(JSON.stringify(told));
`;

function compiled(code: string, file: string): string {
  const { code: text } = transformSync(code, { loader: "ts", target: "es2022", sourcemap: "inline", sourcefile: file });
  return text.replaceAll(/(from |import |import\()"(\.[^"]*)\.ts"/g, '$1"$2.js"');
}

beforeAll(() => {
  const installed = join(folder, "node_modules/tracefx");
  const compileAll = (sources: string, into: string, shown: string): void => {
    for (const name of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts")) continue;
      const path = join(into, name.replace(/\.ts$/, ".js"));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, compiled(readFileSync(join(sources, name), "utf8"), join(shown, name)));
    }
  };
  compileAll(here("../../src"), join(installed, "dist"), join(installed, "src"));
  // Where the sources look for them.
  const bindings = join(installed, "../bindings");
  compileAll(here("../../../bindings"), bindings, bindings);
  // What Node is led to otherwise has no maps.
  const manifest = readFileSync(here("../../package.json"), "utf8").replaceAll(/"node": "\.[^"]*",\s*/g, "");
  writeFileSync(join(installed, "package.json"), manifest);
  symlinkSync(here("../../wasm"), join(installed, "wasm"));
  symlinkSync(here("../../../node_modules/acorn"), join(folder, "node_modules/acorn"));
  writeFileSync(join(folder, "program.mjs"), compiled(PROGRAM, join(folder, "program.ts")));
});

afterAll(() => rmSync(folder, { recursive: true }));

function lineOf(mark: string): number {
  const lines = PROGRAM.split("\n");
  const at = (text: string): number => lines.findIndex((line) => line.endsWith(`// ${text}`)) + 1;
  return at(mark) || at(mark.replace(", stack", ""));
}

test("the user's line is told through source maps", () => {
  const flags = ["--enable-source-maps", join(folder, "program.mjs")];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: "utf8" });
  expect(stderr).toBe("");
  const told = JSON.parse(stdout) as Record<string, string>;
  const places = Object.entries(told).map(([name, text]) => [
    name,
    /(\w+\.(?:ts|mjs|js)):(\d+)/.exec(text)?.[0] ?? text,
  ]);
  expect(Object.fromEntries(places)).toEqual(
    Object.fromEntries(Object.keys(told).map((name) => [name, `program.ts:${lineOf(name)}`])),
  );
});
