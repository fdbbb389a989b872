/** `npx tracefx` does what the native command does: `crates/cli/tests/it/both.rs` holds that to the same golden file. */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test, vi } from "vitest";
import { main } from "../../src/cli/main.ts";

interface Outcome {
  readonly args: readonly string[];
  readonly code: number;
  readonly stdout: string;
  /** What a wrong command line is told. */
  readonly stderr?: string;
  /** The code of a refusal. */
  readonly error?: string;
  /** The SHA-256 of the file that is written. */
  readonly written?: string;
}

const FIXTURES = fileURLToPath(new URL("../../../tests/fixtures", import.meta.url));
const GOLDEN = new URL("../../../tests/golden/command/outcomes.json", import.meta.url);
const SCRATCH = realpathSync(mkdtempSync(join(tmpdir(), "tracefx-both-")));

afterAll(() => rmSync(SCRATCH, { recursive: true }));

/** Numbers of milliseconds differ from run to run. */
function withoutTimes(text: string): string {
  return text.replace(/(?<="(?:milliseconds|median)":)[0-9.e-]+|[0-9.]+(?= ms)/g, "#");
}

function path(word: string): string {
  return word.replace("FIXTURES", FIXTURES).replace("SCRATCH", SCRATCH);
}

/** What was printed, without what differs between machines. */
function clean(calls: unknown[][]): string {
  const text = calls.map(([it]) => `${String(it)}\n`).join("");
  return withoutTimes(text.replaceAll(FIXTURES, "FIXTURES").replaceAll(SCRATCH, "SCRATCH"));
}

async function outcomeOf(words: readonly string[]): Promise<Outcome> {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const problem = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    const code = await main(words.map(path));
    const stderr = clean(problem.mock.calls);
    const written = words.findLast((it) => it.startsWith("SCRATCH/") && !it.endsWith(".safetensors"));
    const isThere = written !== undefined && existsSync(path(written));
    return {
      args: words,
      code,
      stdout: clean(log.mock.calls),
      ...(code === 2 ? { stderr } : {}),
      // Programs that differ are no problem.
      ...(code === 1 && stderr !== "" ? { error: (JSON.parse(stderr) as { error: { code: string } }).error.code } : {}),
      ...(isThere
        ? {
            written: createHash("sha256")
              .update(readFileSync(path(written)))
              .digest("hex"),
          }
        : {}),
    };
  } finally {
    log.mockRestore();
    problem.mockRestore();
  }
}

test("every command line has the outcome of the native command", async () => {
  const cases = JSON.parse(readFileSync(GOLDEN, "utf8")) as Outcome[];
  expect(cases.length).toBeGreaterThan(40);
  for (const it of cases) expect.soft(await outcomeOf(it.args)).toEqual(it);
});
