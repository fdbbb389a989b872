import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Linter } from "eslint";
import { parseSync } from "vite";
import { afterAll, describe, expect, it } from "vitest";
import { tracefx } from "../../src/lint/plugin.ts";

/** A parser of TypeScript for ESLint: the one of Vite, whose trees are those of typescript-eslint. */
const TYPESCRIPT = {
  parseForESLint(text: string): Linter.ESLintParseResult {
    const { program, errors } = parseSync("model.ts", text, { lang: "ts", range: true, astType: "ts" });
    if (errors[0] !== undefined) throw new Error(errors[0].message);
    const starts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
    const at = (offset: number): { line: number; column: number } => {
      const line = starts.findLastIndex((start) => start <= offset);
      return { line: line + 1, column: offset - (starts[line] ?? 0) };
    };
    const locate = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      if ("start" in value && "end" in value && typeof value.start === "number" && typeof value.end === "number")
        Object.assign(value, { loc: { start: at(value.start), end: at(value.end) } });
      for (const [key, inner] of Object.entries(value)) if (key !== "loc") locate(inner);
    };
    locate(program);
    const ast = Object.assign(program, { tokens: [], comments: [] }) as unknown as Linter.ESLintParseResult["ast"];
    return { ast, visitorKeys: {} };
  },
};

/** What the rule reports: `line:column message`. */
function lint(code: string, { typed = false, options = {} } = {}): string[] {
  const messages = new Linter().verify(code, [
    {
      files: ["**/*"],
      plugins: { tracefx: tracefx as never },
      rules: { "tracefx/no-untraceable": ["error", options] },
      ...(typed ? { languageOptions: { parser: TYPESCRIPT } } : {}),
    },
  ]);
  return messages.map(({ line, column, message }) => `${line}:${column} ${message.replace(/\. .*/s, "")}`);
}

const SAYS = "asks whether a traced value is true; JavaScript always says yes, and the other branch would be lost";

describe("modules", () => {
  it.each([
    ["nn.Module", "class Net extends nn.Module { forward(x) { if (x) return 1; return x; } }"],
    ["Module", "class Net extends Module { forward(x) { if (x) return 1; return x; } }"],
    [
      "a class of tracefx",
      'import { Base } from "tracefx"; class Net extends Base { forward(x) { if (x) return 1; } }',
    ],
    ["a class expression", "const Net = class extends Module { forward(x) { if (x) return 1; } };"],
    ["a class field", "class Net extends Module { forward = (x) => { if (x) return 1; }; }"],
    ["a module of the file", "class A extends Module {} class B extends A { forward(x) { if (x) return 1; } }"],
    ["an exported class", "export class Net extends Module { forward(x) { if (x) return 1; } }"],
  ])("%s", (_, code) => {
    expect(lint(code)).toEqual([expect.stringContaining(`\`if (x)\` ${SAYS}`)]);
  });

  it("are no other classes", () => {
    expect(lint("class Net extends Component { forward(x) { if (x) return 1; } }")).toEqual([]);
    expect(lint("class Net extends Module { render(x) { if (x) return 1; } }")).toEqual([]);
    expect(lint("class A {} class B extends A { forward(x) { if (x) return 1; } }")).toEqual([]);
  });
});

describe("what is reported", () => {
  it("has its place", () => {
    expect(lint("class Net extends Module {\n  forward(x) {\n    return x ? 1 : 2;\n  }\n}")).toEqual([
      `3:12 \`x ? … : …\` ${SAYS}`,
    ]);
  });

  it("is found in methods, base classes and functions of the file", () => {
    const code = `
      const helper = (y) => (y ? 1 : 2);
      class Base extends Module { check(z) { return z === 3; } }
      class Net extends Base { forward(x) { return [helper(x), this.check(x), this.check(3)]; } }`;
    expect(lint(code).map((problem) => problem.split(" ")[0])).toEqual(["2:30", "3:53"]);
  });

  it("is what the trace would refuse by itself too", () => {
    expect(lint("class Net extends Module { forward(x) { return x + 1; } }")).toEqual([
      "1:48 `x + 1` would turn a traced value into a number",
    ]);
  });

  it("is what is computed from a parameter of the module", () => {
    const body = "forward(x) { if (this.w.sum()) return x; return this.w ? 1 : 2; }";
    expect(lint(`class Net extends Module { w = new Parameter(1); ${body} }`)).toHaveLength(1);
    expect(
      lint(`class Net extends Module { constructor() { super(); this.w = new nn.Parameter(1); } ${body} }`),
    ).toHaveLength(1);
    expect(lint(`class Net extends Module { w = new Linear(1); ${body} }`)).toEqual([]);
  });

  it("is what getters of the module give", () => {
    expect(lint(computing("this.w.sum()"))).toHaveLength(1);
    expect(lint(computing("this.training"))).toEqual([]);
  });

  it("is what functions do that are traced", () => {
    expect(lint("symbolicTrace((x) => (x ? 1 : 2));")).toHaveLength(1);
    expect(lint("const f = (x) => (x ? 1 : 2); fx.symbolicTrace(f);")).toHaveLength(1);
    expect(lint("function f(x, n) { return n ? 1 : 2; } new Tracer().trace(f, { concreteArgs: { n: 1 } });")).toEqual(
      [],
    );
    expect(lint("const f = (x) => (x ? 1 : 2); f(1);")).toEqual([]);
  });

  it("is a call of a function of another file, where that is asked for", () => {
    const code =
      'import { a } from "./a.js"; import { b } from "tracefx"; class Net extends Module { forward(x) { return b(a(x)); } }';
    expect(lint(code)).toEqual([]);
    expect(lint(code, { options: { unchecked: true } })).toEqual([
      expect.stringContaining("`a` is given a traced value"),
    ]);
  });

  it("is nothing of what other functions of the file do", () => {
    expect(lint("const f = () => Math.random(); class Net extends Module { forward(x) { return x; } }")).toEqual([]);
    expect(lint("let n = 0; const f = () => { n++; }; class Net extends Module { forward(x) { return x; } }")).toEqual(
      [],
    );
  });

  it("is what a trace changes, and what changes with time", () => {
    const code = `let n = 0;
      class Net extends Module {
        forward(x) {
          n++;
          this.steps += 1;
          let own = 0;
          own++;
          return x.mul(Date.now() + new Date().getTime() + n + own);
        }
      }`;
    expect(lint(code)).toEqual([
      expect.stringContaining("`n++` changes something outside"),
      expect.stringContaining("`this.steps += 1` changes something outside"),
      expect.stringContaining("`Date.now()` gives one time"),
      expect.stringContaining("`new Date()` gives one time"),
    ]);
  });

  it("is no decision by guard", () => {
    const code = `import * as fx from "tracefx";
      import { guard, nn, operator } from "tracefx";
      class Net extends nn.Module {
        forward(x) {
          if (guard(operator.gt(x.size(0), 3))) return x;
          while (!fx.guard(operator.eq(x.shape[0], 4)) && guard(x.size(0).lt(9))) return x.neg();
          return x.shape[0] === 4 ? x : x.neg();
        }
      }`;
    expect(lint(code).map((problem) => problem.split(" ")[0])).toEqual(["7:18"]);
  });

  it("is no flag, name or count", () => {
    expect(
      lint(
        'class Net extends Module { forward(x, flag = false, mode = "a") { return flag || mode === "a" ? x : 1; } }',
      ),
    ).toEqual([]);
  });

  it("is no ordinary code", () => {
    const code = `class Net extends nn.Module {
      forward(x) {
        if (this.training) x = this.dropout.forward(x);
        for (const layer of this.layers) x = layer.forward(x);
        if (this.downsample !== undefined) x = this.downsample.forward(x);
        const [a, b] = torch.split(x, 2);
        return this.norm?.forward(a) ?? b;
      }
    }`;
    expect(lint(code)).toEqual([]);
  });
});

/** A module with a getter that gives that. */
function computing(value: string): string {
  return `class Net extends Module { w = new Parameter(1); get it() { return ${value}; } forward(x) { return this.it ? x : 1; } }`;
}

/** A module that compares its second parameter, which is declared like that. */
function comparing(parameter: string): string {
  return `class Net extends Module { forward(x: Tensor, ${parameter}): Tensor { return n === null || n === 1 ? x : n; } }`;
}

describe("TypeScript", () => {
  const typed = true;

  it("is read through assertions, decorators and types", () => {
    const code = `class Net extends nn.Module<Tensor> {
      @traced() override forward(this: Net, x: Tensor, y?: Tensor): Tensor {
        if ((x as any)!) return <Tensor>x;
        return (y satisfies unknown) ? x : y!;
      }
    }`;
    expect(lint(code, { typed }).map((problem) => problem.split(" ")[0])).toEqual(["3:14", "4:17"]);
  });

  it("says what may be left out", () => {
    expect(lint(comparing("n?: Tensor"), { typed })).toHaveLength(2);
    expect(lint(comparing("n: Tensor"), { typed })).toHaveLength(1);
  });

  it("says what is no tensor", () => {
    for (const type of ["number", "boolean", '"a" | "b"', "string | null"])
      expect(lint(comparing(`n: ${type}`), { typed })).toEqual([]);
    expect(lint(comparing("n: Tensor | number"), { typed })).toHaveLength(1);
  });

  it("declares signatures without bodies", () => {
    const code =
      "abstract class Net extends Module { forward(x: number): void; forward(x: Tensor) { if (x) return; } abstract y(): void; }";
    expect(lint(code, { typed })).toHaveLength(1);
  });
});

describe("no-function-target", () => {
  const config = [
    { plugins: { tracefx: tracefx as never }, rules: { "tracefx/no-function-target": "error" as const } },
  ];
  const told = (code: string): string[] =>
    new Linter().verify(code, config).map(({ line, column, message }) => `${line}:${column} ${message}`);
  const NEVER = "A target is the name of a function, so it is never";

  it.each([
    ["a comparison", "if (node.target === torch.relu) f();", "1:21", "torch.relu"],
    ["one from the right", "if (torch.relu != node.target) f();", "1:5", "torch.relu"],
    [
      "a variable",
      "const { target } = node; if (target !== torch.ops.aten.add.Tensor) f();",
      "1:41",
      "torch.ops.aten.add.Tensor",
    ],
    ["something imported", 'import { F as fn } from "tracefx";\nnode.target === fn.relu;', "2:17", "fn.relu"],
    ["a case", "switch (node.target) {\n  case torch.relu:\n    f();\n}", "2:8", "torch.relu"],
    ["a list", "[torch.relu, torch.sigmoid.target].includes(node.target);", "1:2", "torch.relu"],
    ["a set", "const some = new Set([torch.relu]);\nsome.has(node.target);", "1:23", "torch.relu"],
  ])("refuses %s, and mends it", (_, code, place, given) => {
    expect(told(code)).toEqual([`${place} ${NEVER} \`${given}\`: write \`${given}.target\`.`]);
    const { fixed, output } = new Linter().verifyAndFix(code, config);
    expect([fixed, output]).toEqual([true, code.replace(given, `${given}.target`)]);
    expect(told(output)).toEqual([]);
  });

  it("takes names, and what is no target", () => {
    expect(told("node.target === torch.relu.target; torch.relu.target === node.target;")).toEqual([]);
    expect(
      told('node.target === "torch.relu"; node.op === torch.relu; torch.relu.target === torch.relu.name;'),
    ).toEqual([]);
    expect(told("event.target === this.button; node.target === other.target; names.has(node.target);")).toEqual([]);
    expect(told("const some = [torch.relu]; const f = () => { const some = []; some.includes(target); };")).toEqual([]);
  });
});

describe("oxlint", () => {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-lint-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("takes the plugin too", async () => {
    const entry = fileURLToPath(new URL("../../src/lint/plugin.ts", import.meta.url));
    await build({
      entryPoints: [entry],
      bundle: true,
      format: "esm",
      platform: "node",
      outfile: join(folder, "plugin.mjs"),
    });
    const config = {
      jsPlugins: ["./plugin.mjs"],
      categories: { correctness: "off" },
      rules: { "tracefx/no-untraceable": "error", "tracefx/no-function-target": "error" },
    };
    writeFileSync(join(folder, ".oxlintrc.json"), JSON.stringify(config));
    const code =
      "class Net extends nn.Module {\n  forward(x: Tensor): Tensor {\n    if (x as any) return x;\n    return x!;\n  }\n}\nnode.target === torch.relu;\n";
    writeFileSync(join(folder, "model.ts"), code);
    const oxlint = fileURLToPath(new URL("../../../node_modules/oxlint/bin/oxlint", import.meta.url));
    const run = (): string =>
      execFileSync(process.execPath, [oxlint, "--format", "unix", "model.ts"], { cwd: folder, encoding: "utf8" });
    let output = "";
    try {
      output = run();
    } catch (error) {
      output = String((error as { stdout: unknown }).stdout);
    }
    expect(output).toMatch(/model\.ts:3:9: `if \(x as any\)` asks whether|model\.ts:3:9: `if \(x\)` asks whether/);
    expect(output).toContain("model.ts:7:17: A target is the name of a function");
  }, 30_000);
});
