/** `node --import tracefx/register`, on the package as it is built and installed. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DECISIONS, isTold, PLACES } from "./decisions.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Where the examples find their data. */
const FIXTURES = new URL("../../../tests/fixtures/", import.meta.url).href;

/** An example as JavaScript, which finds its data where it is. */
const javaScriptOf = (url: URL): string =>
  transformSync(readFileSync(url, "utf8"), { loader: "ts", target: "es2022" })
    .code.replaceAll(/(from|import) "(\.[^"]*)\.ts"/g, '$1 "$2.js"')
    .replace('new URL("../../tests/fixtures/", import.meta.url)', `new URL(${JSON.stringify(FIXTURES)})`)
    .replace('includes("debugging.ts")', 'includes("debugging.js")');

/** The folder of a program with the package installed. */
const folder = mkdtempSync(join(tmpdir(), "tracefx-register-"));

beforeAll(() => {
  const installed = join(folder, "node_modules/tracefx");
  mkdirSync(installed, { recursive: true });
  cpSync(here("../../package.json"), join(installed, "package.json"));
  symlinkSync(here("../../wasm"), join(installed, "wasm"));
  execFileSync(process.execPath, [here("../../../scripts/package.mjs"), installed]);
  for (const name of ["acorn", "magic-string", "@jridgewell"]) {
    symlinkSync(here(`../../../node_modules/${name}`), join(folder, "node_modules", name));
  }
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

/** Writes files, and gives the path of the first. */
function written(files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return join(folder, Object.keys(files)[0] as string);
}

interface Run {
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  readonly isPlain?: boolean;
}

/** What a program prints, on both streams. */
function run(files: Readonly<Record<string, string>>, { env = {}, flags = [], isPlain = false }: Run = {}): string {
  const loader = isPlain ? [] : ["--import", "tracefx/register"];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, ...loader, written(files)], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "", ...env },
  });
  return `${stdout}${stderr}`.replaceAll(folder, "");
}

/** A program that traces a function which is reached through a value, and prints the graph or the error. */
const tells = (getsFunction: string): string => `${getsFunction}
const { symbolicTrace } = await import("tracefx");
const functions = new Map([["it", it]]);
try {
  console.log(symbolicTrace((x) => x.add([...functions.values()][0](x))).code);
} catch (error) {
  console.log(error.message);
}
`;

const IT = `
export const it = (x) => {
  return x ? 1 : 2;
};
`;

describe("a branch on a traced value throws at its line", () => {
  it("in modules", () => {
    const files = { "main.mjs": tells('import { it } from "./it.mjs";'), "it.mjs": IT };
    expect(run(files, { isPlain: true })).toContain("x.add(1)");
    expect(run(files)).toMatch(/FX0801.*`\?:`\n.*\/it\.mjs:3:/);
  });

  it("in CommonJS, by import and by require, and in the program itself", () => {
    const common = "\n\nexports.it = (x) => x === 1;\n";
    const asks = /FX0801.*`===`[^]*\/it\.cjs:3:/;
    expect(run({ "main.mjs": tells('import { it } from "./it.cjs";'), "it.cjs": common })).toMatch(asks);
    const main = `(async () => {\n${tells('const { it } = require("./it.cjs");')}})();`;
    expect(run({ "main.cjs": main, "it.cjs": common })).toMatch(asks);
    const whole = `const it = (x) => {\n  if (x) return 1;\n  return 2;\n};\n(async () => {\n${tells("")}})();`;
    expect(run({ "whole.cjs": whole })).toMatch(/FX0801.*`if`[^]*\/whole\.cjs:2:/);
  });

  it("in files of which no package says what they are", () => {
    const program = (text: string): string => `(async () => {\n${tells(text)}})();`;
    const asks = /FX0801.*`if`[^]*\/it\.js:2:/;
    const common = 'exports.it = (x) => {\n  if (x) return "import it";\n  return "export it";\n};\n';
    expect(run({ "main.js": program('const { it } = require("./it.js");'), "it.js": common })).toMatch(asks);
    const module = "export const it = (x) => {\n  if (x) return 1;\n  return 2;\n};\n";
    expect(run({ "other.mjs": tells('import { it } from "./it.js";'), "it.js": module })).toMatch(asks);
  });

  it("while a module is exported", () => {
    const main = `import { Dim, exportProgram, init, nn, torch } from "tracefx";
import { it } from "./size.mjs";
await init();
const functions = new Map([["it", it]]);
class Net extends nn.Module {
  forward(x) {
    return [...functions.values()].map((f) => f(x.shape[0]))[0] ? x.add(1) : x.mul(3);
  }
}
const program = exportProgram(new Net(), [torch.ones(4)], {}, { dynamicShapes: { x: { 0: Dim.AUTO } } }).module();
console.log(program(torch.ones(4)).toArray().join());
try {
  program(torch.ones(5));
} catch (error) {
  console.log(error.message);
}
`;
    const said = run({ "main.mjs": main, "size.mjs": "export const it = (n) => n === 4;\n" });
    expect(said).toMatch(/^2,2,2,2\nFX0603: guard failed: x\.size\(\)\[0\] == 4/);
  });
});

describe("what is rewritten", () => {
  const files = {
    "main.mjs": tells('import { it } from "acme-layers";'),
    "node_modules/acme-layers/package.json": '{ "type": "module", "exports": "./it.js" }',
    "node_modules/acme-layers/it.js": IT,
  };

  it("is nothing in node_modules, but what is asked for", () => {
    expect(run(files)).toContain("x.add(1)");
    expect(run(files, { env: { TRACEFX_INCLUDE: "other, acme-layers" } })).toMatch(/FX0801.*`\?:`\n.*it\.js:3:/);
    expect(run(files, { env: { TRACEFX_INCLUDE: "acme" } })).toContain("x.add(1)");
  });

  it("is operators, where they are asked for", () => {
    const main = { "main.mjs": tells("const it = (x) => x * 2 < 3;") };
    expect(run(main)).toContain("FX0802");
    expect(run(main, { env: { TRACEFX_OPERATORS: "1" } })).toContain("operator.lt(");
  });

  it("leads back to the source through the maps of compilers", () => {
    const source =
      "interface Unused {\n  a: number;\n}\n\nexport const it = (x: unknown): number => {\n  return x ? 1 : 2;\n};\n";
    const place = /`\?:`\n[^\n]*\/src\/it\.ts:6:/;
    for (const sourcemap of ["inline", "external"] as const) {
      const { code, map } = transformSync(source, { loader: "ts", sourcemap, sourcefile: "../src/it.ts" });
      const linked = sourcemap === "inline" ? code : `${code}//# sourceMappingURL=it.js.map\n`;
      const built = {
        "main.mjs": tells('import { it } from "./dist/it.js";'),
        "dist/it.js": linked,
        "dist/it.js.map": map,
      };
      const packaged = { ...built, "dist/package.json": '{ "type": "module" }', "src/it.ts": source };
      expect(run(packaged, { flags: ["--enable-source-maps"] })).toMatch(place);
    }
  });
});

/** What is printed, but for numbers of processes and warnings about files. */
function told(text: string): string {
  const same = text.replaceAll(/\(node:\d+\)|\(Use `node.*|ExperimentalWarning.*/g, "");
  return same.replace(/^.*tracefx leaves.*\n?/m, "").trim();
}

describe("programs do what they do without it", () => {
  const PROGRAMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    "cycles of modules": {
      "main.mjs":
        'import { even } from "./odd.mjs";\nexport function half(n) { return n ? n / 2 : 0; }\nconsole.log(even(4));\n',
      "odd.mjs":
        'import { half } from "./main.mjs";\nexport const even = (n) => half(n) === 2;\nconsole.log(even(6), half(0));\n',
    },
    "cycles of CommonJS": {
      "a.cjs":
        'exports.f = (x) => x || "none";\nconst { g } = require("./b.cjs");\nconsole.log(g(0), require.main === module, __filename.length > 0);\n',
      "b.cjs": 'const a = require("./a.cjs");\nexports.g = (x) => a.f(x) === "none";\n',
    },
    "a script without require, sloppy": {
      "s.cjs":
        "#!/usr/bin/env node\nfunction f() { return this ? typeof this : 1; }\nconsole.log(f(), arguments.length);\nreturn;\n",
    },
    "strict, with a directive": { "d.cjs": '"use strict";\nconsole.log((function () { return this ? 1 : 2; })());\n' },
    "a name that is taken": { "n.mjs": 'const __tracefx = 1;\nif (__tracefx) console.log("it", __tracefx);\n' },
    "top-level await, JSON and dynamic imports": {
      "t.mjs":
        'import data from "./data.json" with { type: "json" };\nconst { f } = await import("./f.cjs");\nconsole.log(data.a && f(data.a), import.meta.url.endsWith("t.mjs"));\n',
      "data.json": '{ "a": 3 }',
      "f.cjs": "module.exports.f = (x) => (x === 3 ? 'three' : 'other');\n",
    },
    "an error of its own": {
      "e.mjs":
        'const f = (x) => x && null.y;\ntry { f(1); } catch (error) { console.log(error.name, error.stack.split("\\n")[1].replace(/:\\d+\\)$/, "")); }\n',
    },
    "a syntax error": { "x.mjs": 'console.log("never");\nif (;\n' },
  };

  it.each(Object.entries(PROGRAMS))("%s", (_, files) => {
    expect(told(run(files))).toBe(told(run(files, { isPlain: true })));
  });
});

describe("decisions of an export", () => {
  it("are right, guards or refused", () => {
    const classes = Object.entries(PLACES).flatMap(([place, write]) =>
      Object.entries(DECISIONS).map(
        ([name, expression]) => `${JSON.stringify(`${place}: ${name}`)}: ${write(expression)},`,
      ),
    );
    const modules = `import { nn, Tensor } from "tracefx";\nexport const MODULES = {\n${classes.join("\n")}\n};\n`;
    const main = `import * as tracefx from "tracefx";
import { outcome } from "untouched/outcome.js";
import { MODULES } from "./modules.mjs";
import { MODULES as WANTED } from "untouched/modules.js";
await tracefx.init();
console.warn = () => {};
const found = Object.entries(MODULES).map(([name, it]) => [name, outcome(tracefx, WANTED[name], it)]);
console.log(JSON.stringify(Object.fromEntries(found)));
`;
    const comparing = transformSync(readFileSync(here("outcome.ts"), "utf8"), { loader: "ts", target: "es2022" });
    const said = run({
      "main.mjs": main,
      "modules.mjs": modules,
      "node_modules/untouched/package.json": '{ "type": "module" }',
      "node_modules/untouched/modules.js": modules,
      "node_modules/untouched/outcome.js": comparing.code,
    });
    const wanted = Object.keys(PLACES).flatMap((place) =>
      Object.keys(DECISIONS).map((name) => [`${place}: ${name}`, isTold(name, place, false) ? "told" : "right"]),
    );
    expect(JSON.parse(said)).toEqual(Object.fromEntries(wanted));
  }, 60_000);
});

describe("the examples", () => {
  const EXAMPLES = new URL("../../examples/", import.meta.url);
  const names = readdirSync(EXAMPLES).filter((name) => name.endsWith(".ts"));
  it.each(names)(
    "%s prints what it prints without the loader, and warns of nothing",
    (name) => {
      const models = readdirSync(new URL("models/", EXAMPLES)).filter((file) => file.endsWith(".ts"));
      const files = [name, ...models.map((file) => `models/${file}`)].map((file) => [
        `examples/${file.replace(/\.ts$/, ".js")}`,
        javaScriptOf(new URL(file, EXAMPLES)),
      ]);
      const program = { ...Object.fromEntries(files), "examples/package.json": '{ "type": "module" }' };
      const expected = run(program, { isPlain: true });
      expect(expected).not.toBe("");
      expect(run(program)).toBe(expected);
    },
    60_000,
  );
});
