import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test, vi } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "tracefx-readme-"));

afterAll(() => rmSync(folder, { recursive: true }));

/** The code of a section of the README, as one module. */
function codeOf(section: string): string {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8").replaceAll("\r\n", "\n");
  const text = readme.split("\n## ").find((it) => it.startsWith(section)) ?? "";
  const blocks = Array.from(text.matchAll(/```ts\n(.*?)```/gs), ([, code = ""]) => code);
  const names = new Set<string>();
  const code = blocks.map((it) =>
    it.replace(/^import \{(.*?)\} from "tracefx";$/ms, (_, list: string) => {
      for (const name of list.split(",")) names.add(name.trim());
      return "";
    }),
  );
  return `import { ${[...names].join(", ")} } from "tracefx";\n${code.join("")}`;
}

test("the README's code traces, edits and rewrites, and prints what it says", async () => {
  const code = codeOf("In TypeScript: trace, look, edit, run");
  const path = join(folder, "readme.ts");
  writeFileSync(path, `${code}\nexport { gm, parts };\n`);
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const { gm, parts } = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as {
    gm: { graph: unknown };
    parts: { graph: unknown };
  };
  const said = Array.from(code.matchAll(/^\/\/ (.*)$/gm), ([, line = ""]) => line).join("\n");
  expect(log.mock.calls).toEqual([[said]]);
  expect(`${gm.graph}`).toContain("call_method[target=sigmoid]");
  expect(`${parts.graph}`).toContain("submod_1");
});
