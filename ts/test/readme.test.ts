import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test, vi } from "vitest";
import { readmeCode } from "./readmeCode.ts";

const folder = mkdtempSync(join(tmpdir(), "tracefx-readme-"));

afterAll(() => rmSync(folder, { recursive: true }));

test("the README's code traces, edits and rewrites, and prints what it says", async () => {
  const { code, output } = readmeCode();
  const path = join(folder, "readme.ts");
  writeFileSync(path, `${code}\nexport { gm, parts };\n`);
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const { gm, parts } = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as {
    gm: { graph: unknown };
    parts: { graph: unknown };
  };
  expect(log.mock.calls.map(([line]) => `${line}\n`).join("")).toBe(output);
  expect(`${gm.graph}`).toContain("call_method[target=sigmoid]");
  expect(`${parts.graph}`).toContain("submod_1");
});
