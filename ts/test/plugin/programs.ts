/**
 * Random programs of plain values, in which every evaluation of a variable, a member or an operand leaves a trace.
 *
 * @module
 */

import { Random } from "../graph/random.ts";

const PROLOGUE = `const seen = (name, value) => { log(name); return value; };
const noisy = (value) => ({ valueOf() { log("valueOf"); return value; }, toString() { log("toString"); return String(value); } });
let a = 1, b = "b", c = null, d = noisy(2), e = [1, , "b"], f;
const o = { get p() { log("get p"); return 3; }, set p(v) { log("set p"); }, q: null, r: { s: 0 }, m(x) { log("m"); return x; }, l: [0, 1, NaN] };
`;

const BINARY = ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>", ">>>"];
const COMPARE = ["===", "!==", "==", "!="];
const LOGICAL = ["&&", "||", "??"];
const ASSIGN = ["=", "+=", "-=", "*=", "&&=", "||=", "??="];

/** Programs that are the same for the same seed. */
export class Programs {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** A whole program: the definition of a function `program`, which is given something to log with. */
  program(): string {
    const statements = Array.from({ length: 1 + this.#random.below(5) }, () => this.#statement(2));
    return `const program = (log) => {
${PROLOGUE}${statements.join("\n")}
return [a, b, typeof c, typeof d, f, o.q, o.r.s];
};`;
  }

  #statement(depth: number): string {
    const [value, inner] = [this.#value(3), depth > 0 ? this.#statement(depth - 1) : "log(a);"];
    return this.#pick([
      () => `log(${value});`,
      () => `log(${value})`,
      () => `if (${value}) { ${inner}\n } else { log("else"); }`,
      () => `for (let i = 0; i < 3 && ${value}; i++) { ${inner} }`,
      () => `{ let i = 0; while (i++ < 2 && ${value}) { ${inner} } }`,
      () => `{ let i = 0; do { ${inner}\n } while (i++ < 2 && ${value}) }`,
      () =>
        `switch (${value}) { case ${this.#value(1)}: ${inner}\n case 1: log("one"); break; default: log("default"); }`,
      () => `${this.#target()} ${this.#pick(ASSIGN)} ${value}`,
      () => `${this.#target()} ${this.#pick(ASSIGN)} ${value};`,
      () => `try { ${inner}\n } catch (error) { log(error.name); }`,
      () => `log([${value}].filter(Boolean).length, e.some((x) => x === ${value}));`,
    ])();
  }

  #value(depth: number): string {
    if (depth === 0) return this.#atom();
    const next = (): string => this.#value(depth - 1);
    return this.#pick([
      () => this.#atom(),
      () => `(${next()} ${this.#pick(BINARY.filter((it) => it !== "**"))} ${next()})`,
      () => `((${next()}) ${this.#pick(BINARY)} /* + */ (${next()}))`,
      () => `(${next()} ${this.#pick(COMPARE)} ${next()})`,
      () => `(${next()} ${this.#pick(LOGICAL)} ${next()})`,
      () => `(${next()} ? ${next()} : ${next()})`,
      () => `!${next()}`,
      () => `${this.#pick(["-", "+", "~", "- ", "typeof ", "void "])}(${next()})`,
      () => `(${this.#target()} ${this.#pick(ASSIGN)} ${next()})`,
      () => `(${next()}, ${next()})`,
      () => `o?.r?.s`,
      () => `${this.#pick(["c", "o", "f", "o.r"])}?.[${next()}]`,
      () => `o.m(${next()})`,
      () => `e.${this.#pick(["includes", "indexOf"])}(${next()})`,
      () => `Boolean(${next()})`,
      () => `Number.isNaN(${next()})`,
      () => `((x) => x && ${next()})(${next()})`,
      () => `[${next()}, ${next()}].find((x) => x)`,
      () => `\`\${${next()}}\``,
    ])();
  }

  #target(): string {
    return this.#pick(["a", "b", "c", "f", "o.p", "o.q", "o.r.s", 'o["q"]', "o.r[seen('k', 's')]", "seen('o', o).q"]);
  }

  #atom(): string {
    const value = this.#pick([
      "a",
      "b",
      "c",
      "d",
      "f",
      "0",
      "1",
      "2.5",
      '"s"',
      '""',
      "null",
      "undefined",
      "true",
      "NaN",
      "o.p",
      "o.q",
      "1n",
    ]);
    return this.#random.below(3) === 0 ? `seen("${value.replaceAll('"', "'")}", ${value})` : value;
  }

  #pick<T>(items: readonly T[]): T {
    return this.#random.pick(items);
  }
}
