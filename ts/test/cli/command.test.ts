/** What `npx tracefx` tells of the machine and of times, and what it writes for shells. */
import { afterEach, expect, test, vi } from "vitest";
import { FINDINGS, OPTIONS, SHELLS, VERBS } from "../../../bindings/command.ts";
import { main } from "../../src/cli/main.ts";
import { fixture } from "../export/fixtures.ts";

const PROGRAM = fixture("digits_cnn/model.pt2");
const INPUTS = fixture("digits_cnn/inputs.safetensors");

afterEach(() => vi.restoreAllMocks());

async function printed(...args: string[]): Promise<string> {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  expect(await main(args)).toBe(0);
  return log.mock.calls.flat().join("\n");
}

test("doctor tells what there is, and a cure for what is missing", async () => {
  const told = JSON.parse(await printed("doctor", "--json")) as {
    readonly missing: readonly { readonly of: string; readonly what: string; readonly cure: string }[];
  };
  expect(Object.keys(told)).toEqual(FINDINGS);
  expect(told).toMatchObject({ command: "node", node: process.versions.node, vectors: "simd128", is_ready: true });
  expect(told.missing.map((it) => it.of)).toContain("gpu");
  vi.restoreAllMocks();
  const text = await printed("doctor");
  for (const { what, cure } of told.missing) expect(text).toContain(`${what}\n  help: ${cure}`);
});

test("bench times the plan and the interpreter", async () => {
  const args = ["bench", PROGRAM, "--inputs", INPUTS, "--repeat", "3"];
  const { inputs, rows } = JSON.parse(await printed(...args, "--json")) as {
    readonly inputs: string;
    readonly rows: readonly Record<string, number>[];
  };
  expect(inputs).toBe("given");
  expect(rows).toMatchObject([
    { mode: "plan", threads: 1, runs: 3 },
    { mode: "interpret", threads: 1, runs: 3 },
  ]);
  for (const { fastest = 0, p10 = 0, median = 0, p90 = 0 } of rows) {
    expect(fastest).toBeGreaterThan(0);
    expect([fastest, p10, median, p90]).toEqual([fastest, p10, median, p90].toSorted((a, b) => a - b));
  }
  vi.restoreAllMocks();
  expect(await printed(...args)).toMatch(/^plan, 1 thread +median [\d.]+ ms .*3 runs\ninterpret, 1 thread +median /);
});

test.each(SHELLS)("completions of %s know every verb and option", async (shell) => {
  const script = await printed("completions", shell);
  // How the script of the shell spells them: the words alone stand in the texts about others, too.
  const spelled = {
    bash: (name: string) => `tracefx,${name})`,
    zsh: (name: string) => `(${name})`,
    fish: (name: string) => `-a "${name}"`,
    powershell: (name: string) => `'tracefx;${name}'`,
  }[shell];
  for (const { name } of VERBS) expect(script).toContain(spelled(name));
  for (const { name } of OPTIONS) expect(script).toContain(shell === "fish" ? `-l ${name}` : `--${name}`);
});

test("a GPU in Node takes a package, and its command says which", async () => {
  const problem = vi.spyOn(console, "error").mockImplementation(() => {});
  expect(await main(["explain", PROGRAM, "--inputs", INPUTS, "--device", "gpu"])).toBe(1);
  expect(problem.mock.calls.flat().join("\n")).toMatch(/FX0706[^]*npm install webgpu[^]*or leave out --device/);
});
