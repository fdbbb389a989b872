/** The bundle of the package, as it is built, beside the files that it is made of. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const PACKAGE = new URL("../", import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8")) as {
  readonly exports: Readonly<Record<string, { readonly node?: string; readonly default?: string }>>;
};
// What `./register` has is done to the process that imports it.
const ENTRIES = Object.entries(exports).filter(([name, { node }]) => node !== undefined && name !== "./register");

/** The names of the functions and classes that each of these files has, each by the name that it is imported by. */
function namesOf(files: readonly (string | undefined)[]): Record<string, Record<string, string>> {
  const source = `
    const all = {};
    for (const file of ${JSON.stringify(files.map((it) => new URL(it as string, PACKAGE).href))}) {
      const found = Object.entries(await import(file)).filter(([, it]) => typeof it === "function");
      all[file.replace("/dist/bundle/", "/dist/")] = Object.fromEntries(found.map(([key, it]) => [key, it.name]));
    }
    console.log(JSON.stringify(all));`;
  return JSON.parse(execFileSync("node", ["--input-type=module", "--eval", source], { encoding: "utf8" })) as Record<
    string,
    Record<string, string>
  >;
}

test("classes and functions have in the bundle the names that they have in the files", () => {
  const names = namesOf(ENTRIES.map(([, it]) => it.node));
  expect(Object.keys(names).length).toBe(ENTRIES.length);
  expect(names).toEqual(namesOf(ENTRIES.map(([, it]) => it.default)));
}, 30_000);
