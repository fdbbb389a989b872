import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { stackText } from "../../src/record/stack.ts";

const own = (name: string): string => new URL(`../../src/${name}`, import.meta.url).href;

/** A traced program; the line with `test.double` is the one that its node must name. */
const PROGRAM = `
import { symbolicTrace } from "./tracefx/src/trace/tracer.ts";
import { wrap } from "./tracefx/src/functions/wrap.ts";

interface Doubles { readonly by: number }

const double = wrap((x: unknown): unknown => x, "test.double");

function helper(x: unknown, _options?: Doubles): unknown {
  return double(x); // line 10
}

const gm = symbolicTrace((x: unknown) => {
  return helper(x);
});
for (const node of gm.graph.nodes) if (node.op === "call_function") console.log(node.meta.get("stack_trace"));
try {
  symbolicTrace((x: string) => {
    return x.length; // line 19
  });
} catch (error) {
  console.log((error as Error).message);
}
`;

/** What the program prints, bundled with the package into one file and run by Node. */
async function runBundled(...flags: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "stack-"));
  try {
    mkdirSync(join(folder, "tracefx"));
    for (const [name, target] of [
      ["tracefx/src", "src"],
      ["tracefx/wasm", "wasm"],
      ["bindings", "../bindings"],
      ["node_modules", "../node_modules"],
    ] as const) {
      symlinkSync(fileURLToPath(new URL(`../../${target}`, import.meta.url)), join(folder, name));
    }
    const source = join(folder, "program.ts");
    writeFileSync(source, PROGRAM);
    await build({
      entryPoints: [source],
      outfile: join(folder, "program.mjs"),
      bundle: true,
      format: "esm",
      platform: "node",
      sourcemap: "inline",
      logLevel: "silent",
      preserveSymlinks: true,
    });
    return execFileSync(process.execPath, [...flags, join(folder, "program.mjs")], { encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const at = (name: string, line: number): string => `    at ${name} (http://localhost/net.ts:${line}:1)`;
const stack = (...frames: readonly string[]): { stack: string } => ({ stack: ["Error", ...frames].join("\n") });

describe("stacks", () => {
  test("name the line of the user's source where Node is told to use source maps, from a bundle too", async () => {
    const lines = (await runBundled("--enable-source-maps")).split("\n");
    expect(lines[0]).toMatch(/^at helper \(.*program\.ts:10:\d+\)$/);
    expect(lines.join("\n")).toMatch(/program\.ts:19:\d+/);
  });

  test("name the line of the bundle where Node is not", async () => {
    const lines = (await runBundled()).split("\n");
    expect(lines[0]).toMatch(/^at helper \(.*program\.mjs:\d+:\d+\)$/);
  });

  test.each([
    [
      "Chrome",
      [
        "Error",
        `    at Proxy.enter (${own("functions/tensorMembers.ts")}:50:3)`,
        "    at Net.forward (http://localhost/net.ts:12:7)",
      ],
      "at Net.forward (http://localhost/net.ts:12:7)",
    ],
    [
      "Chrome, of a module that is traced",
      [
        "Error",
        "    at Proxy.forward (http://localhost/net.ts:12:7)",
        "    at async Proxy.run (http://localhost/net.ts:3:1)",
      ],
      "at forward (http://localhost/net.ts:12:7)\nat run (http://localhost/net.ts:3:1)",
    ],
    [
      "Firefox",
      [
        `enter@${own("functions/tensorMembers.ts")}:50:3`,
        "forward@http://localhost/net.ts:12:7",
        "@http://localhost/main.ts:3:1",
      ],
      "forward@http://localhost/net.ts:12:7\n@http://localhost/main.ts:3:1",
    ],
    [
      "Safari",
      [
        `enter@${own("functions/tensorMembers.ts")}:50:3`,
        "forward@http://localhost/net.ts:12:7",
        "module code@http://localhost/main.ts:3:1",
      ],
      "forward@http://localhost/net.ts:12:7\nmodule code@http://localhost/main.ts:3:1",
    ],
  ])("are read as %s writes them", (_, frames, expected) => {
    expect(stackText([{ stack: frames.join("\n") }])).toBe(expected);
  });

  test("of calls of modules follow, and a frame that two of them share is told once", () => {
    expect(
      stackText([stack(at("inner", 1), at("outer", 2)), stack(at("outer", 2), at("main", 3))]).split("\n"),
    ).toEqual([
      "at inner (http://localhost/net.ts:1:1)",
      "at outer (http://localhost/net.ts:2:1)",
      "at main (http://localhost/net.ts:3:1)",
    ]);
  });

  test("are empty where there are no frames", () => {
    expect(stackText([{}])).toBe("");
  });
});
