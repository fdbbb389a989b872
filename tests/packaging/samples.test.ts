/** The samples of the README and of `docs/`, against the packed tarball: type-checked, and run where they are programs. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installedProject, type Project } from "./installed.ts";
import { samples } from "./samples.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
/** The compilers by their places: the repository's, and the oldest that the types are for. */
const COMPILERS = {
  newest: `${MODULES}/typescript`,
  "5.6": fileURLToPath(new URL("node_modules/typescript", import.meta.url)),
};
/** The program that the samples open: it takes images of digits, `f32[N, 1, 8, 8]`. */
const MODEL = fileURLToPath(new URL("../fixtures/programs/digits_cnn/model.pt2", import.meta.url));
const all = samples();
const fileOf = (name: string): string => name.replace(/\W+/g, "_");

/** The settings of a strict project; `skipLibCheck` is what a project with a bundler's types needs. */
const STRICT = ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom"];

let project: Project;

beforeAll(() => {
  project = installedProject();
  mkdirSync(join(project.folder, "node_modules/@types"), { recursive: true });
  for (const name of ["@types/node", "undici-types"]) {
    symlinkSync(join(MODULES, name), join(project.folder, "node_modules", name));
  }
  copyFileSync(MODEL, join(project.folder, "model.pt2"));
  for (const { name, code } of all) writeFileSync(join(project.folder, `${fileOf(name)}.ts`), code);
}, 120_000);

afterAll(() => project[Symbol.dispose]());

/** Compiles samples, and gives what the compiler says. */
function compiled(compiler: keyof typeof COMPILERS, names: readonly string[], ...flags: string[]): string {
  const tsc = join(COMPILERS[compiler], "bin/tsc");
  const files = names.map((name) => `${fileOf(name)}.ts`);
  try {
    const args = [tsc, ...STRICT, "--types", "node", ...flags, ...files];
    return execFileSync("node", args, { cwd: project.folder, encoding: "utf8" });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

const ofBundlers = all.filter(({ code }) => code.includes("tracefx/plugin/"));
const others = all.filter((it) => !ofBundlers.includes(it)).map(({ name }) => name);

test("there are samples, and most of them run", () => {
  expect(all.length).toBeGreaterThanOrEqual(17);
  expect(all.filter(({ notRun }) => notRun === undefined).length).toBeGreaterThanOrEqual(9);
});

test.each(["newest", "5.6"] as const)(
  "all have the types that they say, for a strict TypeScript: %s",
  (compiler) => {
    expect(compiled(compiler, others, "--noEmit")).toBe("");
  },
  120_000,
);

test("settings of bundlers have types where their types are not looked into", () => {
  symlinkSync(join(MODULES, "vite"), join(project.folder, "node_modules/vite"));
  const names = ofBundlers.map(({ name }) => name);
  expect(compiled("newest", names, "--noEmit", "--skipLibCheck")).toBe("");
}, 120_000);

describe("programs run:", () => {
  const programs = all.filter(({ notRun }) => notRun === undefined).map(({ name }) => name);

  beforeAll(() => {
    expect(compiled("newest", programs)).toBe("");
  }, 120_000);

  test.each(programs)("%s", (name) => {
    const said = all.find((it) => it.name === name)?.prints;
    const options = { cwd: project.folder, encoding: "utf8", stdio: "pipe" } as const;
    const printed = execFileSync("node", [`${fileOf(name)}.js`], options);
    if (said !== undefined) expect(printed).toBe(said);
  });
});
