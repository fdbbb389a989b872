import { SourceMap } from "node:module";
import { runInThisContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { rewrite, RUNTIME } from "../../src/plugin/rewrite.ts";
import { __tracefx } from "../../src/trace/checked.ts";
import { Programs } from "./programs.ts";

const HEADER = `import { __tracefx } from "${RUNTIME}"; `;

/** The rewritten code without the import, with `$` for the object of the calls. */
function rewritten(code: string, operators = false): string {
  const result = rewrite(code, { operators });
  if (result === undefined) return code;
  expect(result.code).toContain(HEADER);
  return result.code.replace(HEADER, "").replaceAll("__tracefx.$", "$");
}

/** What a program does: what it logs, gives and throws. */
function outcome(code: string): string {
  const log: unknown[] = [];
  const run: unknown = runInThisContext(`"use strict"; (__tracefx, log) => { ${code}\nreturn program(log); }`);
  try {
    log.push(["gives", (run as (...args: unknown[]) => unknown)(__tracefx, (value: unknown) => log.push(value))]);
  } catch (error) {
    log.push(["throws", (error as Error).name]);
  }
  return JSON.stringify(log, (_, value: unknown) =>
    typeof value === "number" || typeof value === "bigint" || value === undefined
      ? `${typeof value} ${String(value)}`
      : value,
  );
}

const TESTS: [from: string, to: string][] = [
  ["if (a) b;", 'if ($test(a, "if")) b;'],
  ["x = a ? b : c;", 'x = $test(a, "?:") ? b : c;'],
  ["while (a) b;", 'while ($test(a, "while")) b;'],
  ["do b; while (a)", 'do b; while ($test(a, "do while"))'],
  ["for (; a; ) b;", 'for (; $test(a, "for"); ) b;'],
  ["x = !a;", 'x = !$test(a, "!");'],
  ["x = !!a;", 'x = !!$test(a, "!");'],
  ["x = a && b;", 'x = $test(a, "&&") && b;'],
  ["x = a && b && c;", 'x = $test($test(a, "&&") && b, "&&") && c;'],
  ["if (a || b) c;", 'if ($test($test(a, "||") || b, "if")) c;'],
  ["x = a ?? b;", 'x = $present(a, "??") ?? b;'],
  ["x = a?.b.c?.();", 'x = $present(a, "?.")?.b.c?.();'],
  ["x = a?.b?.[c];", 'x = $present($present(a, "?.")?.b, "?.")?.[c];'],
  ["x = a === b;", 'x = $compare(a , "===", b);'],
  ["x = (a) /* === */ !== (b);", 'x = $compare((a) /* === */ , "!==", (b));'],
  ["x = a === null;", 'x = $present(a, "===") === null;'],
  ["x = undefined != a;", 'x = undefined != $present(a, "!=");'],
  ["switch (a) { case b: case 1: c; }", 'switch ($switch(a, () => [b, 1])) { case $plain(b, "case"): case 1: c; }'],
  ["switch (a) { case b(): c; }", 'switch ($plain(a, "switch")) { case $plain(b(), "case"): c; }'],
  ["let a; x = typeof a;", 'let a; x = typeof $plain(a, "typeof");'],
  ["x = a instanceof B;", 'x = $plain(a, "instanceof") instanceof B;'],
  ['console.assert(a, "b");', 'console.assert($test(a, "console.assert", "b"), "b");'],
  ["x = Boolean(a);", 'x = Boolean($test(a, "Boolean"));'],
  ["x = Array.isArray(a);", 'x = Array.isArray($plain(a, "Array.isArray"));'],
  ["x = Object.is(a, b);", "x = $is(a, b);"],
  ["x = new Set([a, b]);", 'x = new Set($keys([a, b], "Set"));'],
  ["a.b.set(c, 1);", '$holder(a.b, "set").set(c, 1);'],
  ["x = a.delete(b);", 'x = $method(a, "delete")(b);'],
  ["x = Number.isNaN(a);", 'x = Number.isNaN($plain(a, "Number.isNaN"));'],
  ["x = new Array(a);", 'x = new Array($plain(a, "Array"));'],
  ["x = a.filter(Boolean);", 'x = a.filter($predicate(Boolean, "filter"));'],
  ["x = a.some((b) => b);", 'x = a.some($predicate((b) => b, "some"));'],
  ["x = a.includes(b);", 'x = $method(a, "includes")(b);'],
  ["x = (a.b).has(c);", 'x = $method((a.b), "has")(c);'],
  ["a &&= b;", '$test(a, "&&="), a &&= b;'],
  ["x = a ??= b;", 'x = ($present(a, "??="), a ??= b);'],
  ["a.b ||= c;", '$member(a, "b", "||=").value ||= c;'],
  ["a[b, c] ??= d;", '$member(a, (b, c), "??=").value ??= d;'],
  ["if (a, b) c;", 'if ($test((a, b), "if")) c;'],
  ["if (a = b) c;", 'if ($test(a = b, "if")) c;'],
  ["if (await a) b;", 'if ($test(await a, "if")) b;'],
  [
    "class A { #b = c && d; static { if (e) f; } }",
    'class A { #b = $test(c, "&&") && d; static { if ($test(e, "if")) f; } }',
  ],
  ["({ a = b && c } = d);", '({ a = $test(b, "&&") && c } = d);'],
  ["x = `${a && b}`;", 'x = `${$test(a, "&&") && b}`;'],
];

const OPERATORS: [from: string, to: string][] = [
  ["x = a + b;", 'x = $operator(a , "+", b);'],
  ["x = a + b * c;", 'x = $operator(a , "+", $operator(b , "*", c));'],
  ["x = (a - b) / 2;", 'x = $operator(($operator(a , "-", b)) , "/", 2);'],
  ["x = -a;", 'x = $unary("-", a);'],
  ["x = - -a;", 'x = $unary("-",  $unary("-", a));'],
  ["x = (~a) ** b;", 'x = $operator(($unary("~", a)) , "**", b);'],
  ["a += b;", 'a = $operator(a, "+", b);'],
  ["a.b.c -= d;", '$member(a.b, "c") .update("-", d);'],
  ["(a.b) += c;", '($member(a, "b")) .update("+", c);'],
  ["(a.b) ||= c;", '($member(a, "b", "||=").value) ||= c;'],
  ["a[b] **= c;", '$member(a, (b)) .update("**", c);'],
  ["if (a < b) c;", 'if ($test($operator(a , "<", b), "if")) c;'],
  ["x = a < 1 === b;", 'x = $compare($operator(a , "<", 1) , "===", b);'],
];

const UNTOUCHED = [
  'x = typeof a === "string";',
  "x = typeof window;",
  "if (true) a;",
  "x = a + b;",
  "x = a < b;",
  "for (;;) break;",
  "a += 1;",
  "x = '=== && if (a)'; // if (a) b && c",
  "x = /a && b === c/;",
  "x = a instanceof Proxy;",
  "class A extends B { m() { return super.includes(a); } }",
  "class A { #a; m() { this.#a ||= 1; } }",
  "x = [].some;",
  "let Boolean = a; x = Boolean(a);",
];

describe("tests are wrapped", () => {
  it.each(TESTS)("%s", (from, to) => {
    expect(rewritten(from)).toBe(to);
  });
});

describe("operators become calls where that is asked for", () => {
  it.each(OPERATORS)("%s", (from, to) => {
    expect(rewritten(from, true)).toBe(to);
  });
});

describe("nothing else is touched", () => {
  it.each(UNTOUCHED)("%s", (code) => {
    expect(rewritten(code)).toBe(code);
  });

  it("in a file that was rewritten already", () => {
    const once = rewrite("if (a) b;")?.code ?? "";
    expect(rewrite(once, { operators: true })).toBeUndefined();
  });

  it("in a file that is no JavaScript", () => {
    expect(() => rewrite("let a: number = 1;")).toThrow(SyntaxError);
  });
});

describe("the import", () => {
  it("stands behind the directives, on the line of the first statement", () => {
    const code = '#!/usr/bin/env node\n"use client";\n\n// why\nif (a) b;';
    expect(rewrite(code)?.code).toBe(
      `#!/usr/bin/env node\n"use client";\n\n// why\n${HEADER}if (__tracefx.$test(a, "if")) b;`,
    );
  });

  it("has another name where the file has taken that one", () => {
    expect(rewrite("const __tracefx = 1; if (a) b;")?.code).toBe(
      `import { __tracefx as __tracefx_ } from "${RUNTIME}"; const __tracefx = 1; if (__tracefx_.$test(a, "if")) b;`,
    );
  });

  it("is a require in a file of CommonJS", () => {
    expect(rewrite('"use strict"; const a = require("tracefx"); exports.b = a || 1;')?.code).toBe(
      `"use strict"; const { __tracefx } = require("${RUNTIME}"); const a = require("tracefx"); exports.b = __tracefx.$test(a, "||") || 1;`,
    );
  });

  it("is a require in a script", () => {
    expect(rewrite("with (a) { if (b) c; }")?.code).toBe(
      `const { __tracefx } = require("${RUNTIME}"); with (a) { if (__tracefx.$test(b, "if")) c; }`,
    );
  });
});

describe("the source map", () => {
  it("leads every word back to its place", () => {
    const code = "first;\nif (alpha &&\n    beta) {\n  gamma(delta === epsilon, -zeta);\n}\n";
    const result = rewrite(code, { id: "model.js", operators: true });
    const map = new SourceMap(JSON.parse(String(result?.map)));
    const lines = (result?.code ?? "").split("\n");
    for (const word of ["first", "alpha", "beta", "gamma", "delta", "epsilon", "zeta"]) {
      const line = lines.findIndex((text) => text.includes(word));
      const entry = map.findEntry(line, lines[line]?.indexOf(word) ?? -1);
      const origin = "originalLine" in entry ? [entry.originalLine, entry.originalColumn] : [];
      const expected = code.split("\n").findIndex((text) => text.includes(word));
      expect([word, ...origin]).toEqual([word, expected, code.split("\n")[expected]?.indexOf(word)]);
    }
  });
});

describe("plain values behave as before", () => {
  it.each([false, true])(
    "in 1000 random programs, operators: %s",
    (operators) => {
      for (let seed = 1; seed <= 1000; seed++) {
        const code = new Programs(seed).program();
        const after = rewrite(code, { operators })?.code.replace(HEADER, "") ?? code;
        expect(outcome(after), `seed ${seed}:\n${code}\n→\n${after}`).toBe(outcome(code));
      }
    },
    60_000,
  );
});
