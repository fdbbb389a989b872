/** The bundle of the package, as it is built, beside the files that it is made of. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const PACKAGE = new URL("../", import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8")) as {
  readonly exports: Readonly<Record<string, { readonly node?: string; readonly default?: string }>>;
};
const ENTRIES = Object.entries(exports).flatMap(([name, { node, default: whole }]) =>
  node === undefined || whole === undefined ? [] : [{ name, node, whole }],
);

/** The names of what an entry point has, each by the name that it is imported by. */
async function namesOf(file: string): Promise<Record<string, string>> {
  const all = (await import(new URL(file, PACKAGE).href)) as Record<string, unknown>;
  const named = Object.entries(all).flatMap(([key, it]) => (typeof it === "function" ? [[key, it.name]] : []));
  return Object.fromEntries(named) as Record<string, string>;
}

test.each(ENTRIES.filter(({ name }) => name !== "./register"))(
  "the classes and functions of $name keep their names",
  async ({ node, whole }) => {
    expect(await namesOf(node)).toEqual(await namesOf(whole));
  },
);
