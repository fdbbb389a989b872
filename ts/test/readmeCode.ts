/**
 * The code of the README that a reader can run.
 *
 * @module
 */
import { readFileSync } from "node:fs";

/** The code of the section on TypeScript, as one module, and what it says that it prints. */
export function readmeCode(): { readonly code: string; readonly output: string } {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8").replaceAll("\r\n", "\n");
  const text = readme.split("\n## ").find((it) => it.startsWith("In TypeScript: trace, look, edit, run")) ?? "";
  const blocks = Array.from(text.matchAll(/```ts\n(.*?)```/gs), ([, code = ""]) => code);
  const names = new Set<string>();
  const parts = blocks.map((it) =>
    it.replace(/^import \{(.*?)\} from "tracefx";$/ms, (_, list: string) => {
      for (const name of list.split(",")) names.add(name.trim());
      return "";
    }),
  );
  const code = `import { ${[...names].join(", ")} } from "tracefx";\n${parts.join("")}`;
  const output = Array.from(code.matchAll(/^\/\/ (.*)$/gm), ([, line = ""]) => `${line}\n`).join("");
  return { code, output };
}
