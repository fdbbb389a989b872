/**
 * The commands that edit a program or a graph module: passes by name, patterns, and edits of single nodes. Each makes a new one, and the
 * one before stays as it is. A command is text with a grammar of its own, and is never evaluated.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { constantFold } from "../passes/constantFold.ts";
import {
  CSEPass,
  fuseBatchNorm,
  linearPermuteFusion,
  mergeGetitems,
  mergeMatmul,
  NormalizeArgs,
  NormalizeOperators,
} from "../rewrite/enginePasses.ts";
import { noteValues, notingValues } from "../rewrite/noteValues.ts";
import { replacePatternWithFilters } from "../rewrite/replacePattern.ts";
import type { Explorable } from "./model.ts";
import { parseArgument, parsePatterns } from "./patternText.ts";
import { spellOperator } from "./spelling.ts";

/** What a command made. */
export interface Edited {
  /** The new program or graph module; the one that was given where nothing was changed. */
  readonly source: Explorable;
  /** What was done, in words. */
  readonly told: string;
}

/** A command. */
export interface Command {
  readonly name: string;
  /** What follows the name. */
  readonly usage: string;
  readonly about: string;
  /** What the next word may be, after these. */
  readonly offers: (words: readonly string[], source: Explorable) => Iterable<string>;
  readonly run: (rest: string, source: Explorable) => Edited;
}

/** A pass changes a graph module in place, and tells what it did. */
interface NamedPass {
  readonly about: string;
  readonly run: (gm: GraphModule) => boolean | { readonly modified: boolean; readonly leftOut?: readonly unknown[] };
}

/** The passes by name. Those of `PASSES_OF_PROGRAMS` take a program, too. */
const PASSES: Readonly<Record<string, NamedPass>> = {
  CSEPass: { about: "merge calls that compute the same", run: (gm) => new CSEPass().call(gm) },
  constantFold: { about: "compute what depends on weights alone", run: (gm) => constantFold(gm) },
  eliminateDeadCode: { about: "erase nodes that nothing uses", run: (gm) => gm.graph.eliminateDeadCode() },
  fuseBatchNorm: { about: "take batch normalizations into the layers before", run: fuseBatchNorm },
  linearPermuteFusion: { about: "swap the last dimensions within linear layers", run: linearPermuteFusion },
  mergeGetitems: { about: "make one of reads of the same item", run: mergeGetitems },
  mergeMatmul: {
    about: "merge products that have the same right-hand side",
    run: (gm) => {
      const before = gm.graph.nodes.length;
      mergeMatmul(gm);
      return gm.graph.nodes.length !== before;
    },
  },
  NormalizeArgs: { about: "give calls their arguments in one form", run: (gm) => new NormalizeArgs().call(gm) },
  NormalizeOperators: { about: "spell operators as Python does", run: (gm) => new NormalizeOperators().call(gm) },
};

/** Passes of programs alone. */
const PASSES_OF_PROGRAMS: Readonly<
  Record<string, { readonly about: string; readonly run: (it: ExportedProgram) => ExportedProgram }>
> = {
  runDecompositions: {
    about: "decompose to the core operators",
    run: (program) => program.runDecompositions(),
  },
};

/** The commands by name. */
export const COMMANDS: readonly Command[] = [
  {
    name: "pass",
    usage: "NAME",
    about: "run a pass",
    offers: (words, source) => (words.length > 0 ? [] : passNames(source)),
    run: (rest, source) => runNamedPass(rest.trim(), source),
  },
  {
    name: "replace",
    usage: "PATTERN with PATTERN",
    about: "replace a pattern wherever it stands: replace relu(x) with clamp_min(x, 0)",
    offers: (_, source) => operatorsOf(source),
    run: replace,
  },
  {
    name: "erase",
    usage: "NODE",
    about: "erase a node that nothing uses",
    offers: (words, source) => (words.length > 0 ? [] : namesOf(source)),
    run: (rest, source) => {
      const [name] = wordsOf(rest, 1, "erase NODE");
      return edit(source, `erased ${name}`, (gm) => gm.graph.eraseNode(nodeOf(gm, name)));
    },
  },
  {
    name: "rename",
    usage: "NODE NAME",
    about: "give a node another name",
    offers: (words, source) => (words.length > 0 ? [] : namesOf(source)),
    run: (rest, source) => {
      const [name, to] = wordsOf(rest, 2, "rename NODE NAME");
      const before = new Set(namesOf(source));
      const edited = edit(source, "", (gm) => {
        const node = nodeOf(gm, name);
        if (node.op === "output") throw fxError("InvalidOption", "the output has no name that anything shows");
        node.name = to;
      });
      // A text that is no name, or one that is taken, is made a name.
      const now = namesOf(edited.source).find((it) => !before.has(it)) ?? name;
      return { ...edited, told: `${name} is ${now}` };
    },
  },
  {
    name: "uses",
    usage: "NODE by NODE",
    about: "make all users of a node use another one",
    offers: (words, source) => (words.length === 1 ? ["by"] : words.length < 3 ? namesOf(source) : []),
    run: (rest, source) => {
      const [name, by, other] = wordsOf(rest, 3, "uses NODE by NODE");
      if (by !== "by") throw misused("uses NODE by NODE");
      return edit(source, `the users of ${name} use ${other}`, (gm) => {
        const to = nodeOf(gm, other);
        const users = nodeOf(gm, name).replaceAllUsesWith(to, { filter: (user) => user !== to });
        forgetValues(users);
      });
    },
  },
  {
    name: "argument",
    usage: "NODE PLACE VALUE",
    about: "give a node another argument, by its place or its name: argument conv2d 3 [2, 2]",
    offers: (words, source) => (words.length > 0 ? [] : namesOf(source)),
    run: (rest, source) => {
      const [, name, place, text] = /^\s*(\S+)\s+(\w+)\s+(.+)$/s.exec(rest) ?? [];
      if (name === undefined || place === undefined || text === undefined) throw misused("argument NODE PLACE VALUE");
      return edit(source, `the argument ${place} of ${name} is ${text.trim()}`, (gm) => {
        const node = nodeOf(gm, name);
        const value = parseArgument(text, (it) => findNode(gm, it));
        if (/^\d+$/.test(place)) node.updateArg(Number(place), value);
        else node.updateKwarg(place, value);
        forgetValues([node]);
      });
    },
  },
];

/** Runs a command. */
export function runCommand(text: string, source: Explorable): Edited {
  const [, name = "", rest = ""] = /^\s*(\S*)(.*)$/s.exec(text) ?? [];
  const command = COMMANDS.find((it) => it.name === name);
  if (command !== undefined) return command.run(rest, source);
  throw fxError("InvalidOption", `there is no command \`${name}\``, {
    help: `the commands are ${COMMANDS.map((it) => it.name).join(", ")}`,
  });
}

/** How many offers are made at most. */
const MOST_OFFERS = 12;

/** What the last word of a text can be completed to, with what it is for. */
export function completions(text: string, source: Explorable): { readonly word: string; readonly about: string }[] {
  const [, before = "", last = ""] = /^(.*?)([\w.]*)$/s.exec(text) ?? [];
  const [name, ...words] = before.trim().split(/\s+/);
  const isFirst = name === undefined || name === "";
  const command = COMMANDS.find((it) => it.name === name);
  const offers = isFirst ? COMMANDS.map((it) => it.name) : (command?.offers(words, source) ?? []);
  const found = new Set<string>();
  for (const it of offers) {
    if (it !== last && it.toLowerCase().startsWith(last.toLowerCase())) found.add(it);
    if (found.size === MOST_OFFERS) break;
  }
  const about = (word: string): string => {
    if (!isFirst) return name === "pass" ? ({ ...PASSES, ...PASSES_OF_PROGRAMS }[word]?.about ?? "") : "";
    const of = COMMANDS.find((it) => it.name === word);
    return of === undefined ? "" : `${of.usage}: ${of.about}`;
  };
  return [...found].map((word) => ({ word, about: about(word) }));
}

function passNames(source: Explorable): string[] {
  const ofPrograms = source instanceof ExportedProgram ? Object.keys(PASSES_OF_PROGRAMS) : [];
  return [...Object.keys(PASSES), ...ofPrograms];
}

function runNamedPass(name: string, source: Explorable): Edited {
  const ofProgram = Object.hasOwn(PASSES_OF_PROGRAMS, name) ? PASSES_OF_PROGRAMS[name] : undefined;
  if (ofProgram !== undefined && source instanceof ExportedProgram) {
    return { source: ofProgram.run(source), told: `${name} is done` };
  }
  const pass = Object.hasOwn(PASSES, name) ? PASSES[name] : undefined;
  if (pass === undefined) {
    throw fxError("InvalidOption", `there is no pass \`${name}\``, {
      help: `the passes are ${passNames(source).join(", ")}`,
    });
  }
  let told = "";
  const edited = editIf(source, (gm) => {
    const answer = pass.run(gm);
    const { modified, leftOut = [] } = typeof answer === "boolean" ? { modified: answer } : answer;
    const rest = leftOut.length > 0 ? `; it left out ${leftOut.length}` : "";
    told = modified ? `${name} changed the graph${rest}` : `${name} found nothing to do${rest}`;
    return modified;
  });
  return { source: edited, told };
}

function replace(rest: string, source: Explorable): Edited {
  const [pattern, replacement, ...more] = rest.split(/\swith\s/);
  if (pattern === undefined || replacement === undefined || more.length > 0)
    throw misused("replace PATTERN with PATTERN");
  const resolve = resolverOf(source);
  const graphs = parsePatterns(pattern, replacement, resolve);
  let n = 0;
  const edited = editIf(source, (gm) => {
    const replaced = replacePatternWithFilters(gm, ...graphs);
    n = replaced.length;
    forgetValues(replaced.flatMap((it) => it.replacements));
    return n > 0;
  });
  return {
    source: edited,
    told: n === 0 ? "the pattern stands nowhere" : `replaced in ${n} ${n === 1 ? "place" : "places"}`,
  };
}

/** A copy that was edited; a program's shares its tensors. */
function edit(source: Explorable, told: string, change: (gm: GraphModule) => void): Edited {
  const edited = editIf(source, (gm) => {
    change(gm);
    return true;
  });
  return { source: edited, told };
}

function editIf(source: Explorable, change: (gm: GraphModule) => boolean): Explorable {
  if (source instanceof ExportedProgram) {
    const unlifted = source.unlift();
    if (!change(unlifted)) return source;
    unlifted.graph.lint();
    return relifted(source, unlifted);
  }
  const copy = source.clone();
  if (!notingValues(copy, () => change(copy))) return source;
  copy.graph.lint();
  return copy;
}

/** The program that was edited. Where a node refuses what it takes now, it says more than that nothing is known of its value. */
function relifted(source: ExportedProgram, unlifted: GraphModule): ExportedProgram {
  try {
    return source.relift(unlifted);
  } catch (error) {
    const [problem, ...notes] = noteValues(unlifted);
    if (problem === undefined || !(error instanceof FxError)) throw error;
    throw fxError("SpecViolation", problem, { node: error.node, notes, cause: error });
  }
}

/** What was known of the values of nodes, and of what is computed from them, need not hold any more: it is noted anew with the program. */
function forgetValues(nodes: readonly Node[]): void {
  const [seen, open] = [new Set<Node>(), [...nodes]];
  for (let it = open.pop(); it !== undefined; it = open.pop()) {
    if (seen.has(it)) continue;
    seen.add(it);
    if (it.op !== "placeholder") it.meta.delete("val");
    open.push(...it.users);
  }
}

/** The names of the nodes that can be edited: those of weights are the program's. */
function namesOf(source: Explorable): string[] {
  const nodes = [...source.graph.nodes].filter((it) => it.op !== "output");
  if (!(source instanceof ExportedProgram)) return nodes.map((it) => it.name);
  const given = new Set<unknown>(source.graphSignature.userInputs);
  return nodes.filter((it) => it.op !== "placeholder" || given.has(it.name)).map((it) => it.name);
}

/** The operators of the graph, as the explorer writes them. */
function operatorsOf(source: Explorable): Set<string> {
  return new Set(source.graph.nodes.filter((it) => it.op === "call_function").map((it) => spellOperator(it.target)));
}

/** Finds operators by what they are called in boxes, or by their full names; what the graph does not have is one of `aten`. */
function resolverOf(source: Explorable): (name: string) => string | undefined {
  const known = new Map(source.graph.nodes.map((it) => [spellOperator(it.target), it.target]));
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    if (/^(?:torch|operator|builtins|math)\./.test(name)) return name;
    const overload = name.replace(/^aten\./, "");
    return `torch.ops.aten.${overload.includes(".") ? overload : `${overload}.default`}`;
  };
}

function findNode(gm: GraphModule, name: string): Node | undefined {
  return gm.graph.nodes.find((it) => it.name === name || (it.op === "get_attr" && it.target === name));
}

function nodeOf(gm: GraphModule, name: string): Node {
  const node = findNode(gm, name);
  if (node !== undefined) return node;
  throw fxError("AttributeMissing", `there is no node \`${name}\``, { help: "the panel has the names of nodes" });
}

function wordsOf<N extends 1 | 2 | 3>(
  text: string,
  n: N,
  usage: string,
): N extends 1 ? [string] : N extends 2 ? [string, string] : [string, string, string] {
  const words = text.trim().split(/\s+/);
  if (words.length !== n || words[0] === "") throw misused(usage);
  return words as never;
}

function misused(usage: string): FxError {
  return fxError("InvalidOption", "the command is not complete, or has too much", { help: `write ${usage}` });
}
