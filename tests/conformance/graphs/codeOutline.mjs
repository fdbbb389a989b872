/**
 * What two languages say alike: the signature, and for each statement what it sets, uses and releases.
 *
 * @module
 */
import { Difference } from "./corpus.mjs";

/**
 * One statement: the variable that it sets (of a return, `return`), those that it uses and those that it releases, in order,
 * and its literals as Python writes them.
 * @typedef {{ sets: string, uses: readonly string[], frees: readonly string[], literals: readonly string[] }} Statement
 */
/** @typedef {{ name: string, type: string, initial: string }} Param */
/** @typedef {{ params: readonly Param[], returns: string, statements: readonly Statement[] }} Outline */

/**
 * The outline of what PyTorch generates.
 * @type {(code: string, names: ReadonlySet<string>) => Outline}
 */
export function pythonOutline(code, names) {
  const lines = code.split("\n").filter((line) => line.trim() !== "" && !line.includes("_symbolic_trace.wrap("));
  const [head = "", ...body] = lines;
  const [, list = "", returns = ""] = /^def forward\(self(?:, )?(.*)\)(?: -> (.+))?:$/.exec(head) ?? [];
  /** @type {Map<string, string>} */
  const aliases = new Map();
  /** @type {Statement[]} */
  const statements = [];
  let params = splitList(list).map((text) => {
    const [, name = "", type = "", initial = ""] = /^(\*{0,2}\w+)(?: : (.+?))?(?: = (.+))?$/.exec(text) ?? [];
    return { name, type, initial };
  });
  for (const line of body.map((it) => it.trim())) {
    if (line === "pass") {
      statements.push({ sets: "return", uses: [], frees: [], literals: ["None"] });
      continue;
    }
    const leaves = /^(.*?), = fx_pytree\.tree_flatten_spec/.exec(line)?.[1];
    if (leaves !== undefined) {
      params = leaves.split(", ").map((name) => ({ name, type: "", initial: "" }));
      continue;
    }
    const alias = /^(\w+) = (\w+)$/.exec(line);
    if (alias !== null && params.some((it) => it.name.replace(/^\*+/, "") === alias[2])) {
      // Arguments have no names in JavaScript, so a parameter is the input itself.
      aliases.set(alias[2] ?? "", alias[1] ?? "");
      continue;
    }
    statements.push(pythonStatement(line, names));
  }
  return {
    params: params.map(({ name, ...rest }) => {
      const plain = name.replace(/^\*+/, "");
      return { name: name.replace(plain, aliases.get(plain) ?? plain), ...rest };
    }),
    returns,
    statements,
  };
}

/** @type {(line: string, names: ReadonlySet<string>) => Statement} */
function pythonStatement(line, names) {
  const parts = line.split(";  ");
  const last = parts.at(-1) ?? "";
  const isFree = parts.length > 1 && /^(\w+ = )+None$/.test(last);
  const frees = isFree ? last.split(" = ").slice(0, -1) : [];
  const [first = "", second] = isFree ? parts.slice(0, -1) : parts;
  if (second !== undefined) {
    // `x += y;  iadd = x` is one call of an operator.
    return { sets: second.split(" = ")[0] ?? "", ...mentioned(first, names), frees };
  }
  const returned = /^return (?:pytree\.tree_unflatten\(\[(.*)\], self\._out_spec\)|(.*))$/.exec(first);
  if (returned !== null) return { sets: "return", ...mentioned(returned[1] ?? returned[2] ?? "", names), frees };
  const [, sets = "", expression = ""] = /^(\w+)(?: : .+?)? = (.*)$/.exec(first) ?? [];
  return { sets, ...mentioned(expression, names), frees };
}

/**
 * The outline of what is generated here.
 * @type {(source: string, names: ReadonlySet<string>) => Outline}
 */
export function javaScriptOutline(source, names) {
  const [head = "", ...rest] = source.trimEnd().split("\n");
  if (rest.pop() !== "}") throw new Difference("the function does not end");
  const [, list = "", returns = ""] = /^function forward\((.*)\)(?: \/\* (.+) \*\/)? \{$/.exec(head) ?? [];
  let declarations = splitList(list);
  const unpacked = /^ {2}let \[(.*)\] = \$inSpec\.flatten\(/.exec(rest[0] ?? "")?.[1];
  if (unpacked !== undefined) {
    rest.shift();
    declarations = splitList(unpacked);
  }
  const params = declarations.map((text) => {
    const [, dots = "", name = "", type = "", initial = ""] =
      /^(\.{3})?(\w+)(?: \/\* (.+?) \*\/)?(?: = (.+))?$/.exec(text) ?? [];
    return { name: dots === "" ? name : `*${name}`, type, initial: pythonLiteral(initial) };
  });
  /** @type {Statement[]} */
  const statements = [];
  for (const line of rest) {
    const options = /^ {2}let (\w+) = \{\};$/.exec(line)?.[1];
    // Behind `*rest` there is nothing left for `**options`.
    if (options !== undefined) params.push({ name: `**${options}`, type: "", initial: "" });
    else statements.push(javaScriptStatement(withPythonNames(line, names), names));
  }
  return { params, returns, statements };
}

/**
 * Variables called like a word of JavaScript have a number there, and complex numbers are no literals.
 * @type {(line: string, names: ReadonlySet<string>) => string}
 */
function withPythonNames(line, names) {
  const complexes = line.replace(/\bcomplex\(([^\s()]+), ([^\s()]+)\)/g, (_, re, im) =>
    re === "0" ? `${im}j` : `(${re}${im.startsWith("-") ? "" : "+"}${im}j)`,
  );
  return complexes.replace(/\b(\w+)_1\b/g, (name, word) => (!names.has(name) && names.has(word) ? word : name));
}

/** @type {(line: string, names: ReadonlySet<string>) => Statement} */
function javaScriptStatement(line, names) {
  const [, first = "", last = ""] = /^ {2}(.*?);(?: {2}(.*);)?$/.exec(line) ?? [];
  const frees = last === "" ? [] : last.split(" = ").slice(0, -1);
  if (last !== "" && !last.endsWith(" = null")) throw new Difference(`${last} releases nothing`);
  const returned = /^return (?:\$outSpec\.unflatten\(\[(.*)\]\)|(.*))$/.exec(first);
  if (returned !== null) return { sets: "return", ...mentioned(returned[1] ?? returned[2] ?? "", names), frees };
  const [, sets = "", expression = ""] = /^let (\w+)(?: \/\* .+? \*\/)? = (.*)$/.exec(first) ?? [];
  return { sets, ...mentioned(expression, names), frees };
}

const TOKEN =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<![\w.)\]"])-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?)j?|\.?[A-Za-z_]\w*(?: = |:)?/g;

const WORDS = new Map([
  ["null", "None"],
  ["true", "True"],
  ["false", "False"],
  ["Infinity", "inf"],
  ["NaN", "nan"],
]);

const CONSTANTS = new Set(["None", "True", "False", "inf", "nan"]);

/**
 * The variables and literals of an expression, in order; keywords, members and attributes are neither.
 * @type {(expression: string, names: ReadonlySet<string>) => Pick<Statement, "uses" | "literals">}
 */
function mentioned(expression, names) {
  const uses = [];
  const literals = [];
  for (const [token] of expression.matchAll(TOKEN)) {
    const word = WORDS.get(token) ?? token;
    if (names.has(word)) uses.push(word);
    else if (CONSTANTS.has(word)) literals.push(word);
    else if (/^[-\d]/.test(word)) literals.push(word.replace(/\.0$/, ""));
  }
  return { uses, literals };
}

/** @type {(text: string) => string} */
function pythonLiteral(text) {
  return text.replaceAll('"', "'").replace(/null|true|false/g, (word) => WORDS.get(word) ?? word);
}

/**
 * The parts between the commas that are in no brackets.
 * @type {(text: string) => string[]}
 */
function splitList(text) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if ("([{".includes(text[at] ?? "")) depth += 1;
    else if (")]}".includes(text[at] ?? "")) depth -= 1;
    else if (text[at] === "," && depth === 0) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  if (text.slice(from).trim() !== "") parts.push(text.slice(from).trim());
  return parts;
}
