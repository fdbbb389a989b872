/**
 * The kind `replace_pattern`: a pattern replaced wherever it stands.
 *
 * @module
 */
import { GraphModule, init, Module, Parameter, RewriteError, replacePatternWithFilters, torch } from "tracefx";
import { build, Difference, encode, same } from "./corpus.mjs";
import { encodeMap } from "./matcher.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ pass: string, options: { pattern: EncodedGraph, replacement: EncodedGraph, ignore_literals?: boolean,
 *   filter?: string, replacement_modules?: { readonly [name: string]: string } }, before: EncodedGraph,
 *   after?: EncodedGraph, error?: import("./corpus.mjs").RecordedError, submodules_after?: { readonly [path: string]: string },
 *   params_after?: { readonly [name: string]: number[] },
 *   matches?: { anchor: string, nodes_map: unknown[], replacements?: string[] }[] }} Case
 */

/**
 * The filter of the corpus: the second wildcard stands for a number.
 * @type {import("tracefx").MatchFilter}
 */
const isNumber = ({ placeholderNodes: [, by] }) => typeof by === "number";

/** Replaces. */
export async function checkReplacePattern(/** @type {Case} */ it) {
  const { pass, options, before, after, error, matches = [] } = it;
  await init();
  const gm = moduleOf(before, {});
  const pattern = moduleOf(options.pattern, {});
  const replacement = moduleOf(options.replacement, options.replacement_modules ?? {});
  const replace = () =>
    replacePatternWithFilters(gm, pattern.graph, pass === "replace_pattern" ? replacement : replacement.graph, {
      ignoreLiterals: options.ignore_literals === true,
      matchFilters: options.filter === undefined ? [] : [isNumber],
    });
  if (error !== undefined) return refused(replace, error.msg);
  const replaced = replace();
  const wantsNew = matches[0]?.replacements !== undefined;
  const told = replaced.map(({ anchor, nodesMap, replacements }) => ({
    anchor: anchor.name,
    nodes_map: encodeMap(nodesMap),
    ...(wantsNew ? { replacements: replacements.map(({ name }) => name) } : {}),
  }));
  same(told, matches, "matches");
  const { nodes, users } = encode(gm.graph);
  same(nodes, after?.nodes, "nodes");
  if (after?.users !== undefined) same(users, after.users, "users");
  if (it.submodules_after !== undefined) {
    const modules = Array.from(gm.namedModules(), ([path, module]) => [path, module.className]);
    same(Object.fromEntries(modules.filter(([path]) => path !== "")), it.submodules_after, "modules");
  }
  if (it.params_after !== undefined) {
    const params = Array.from(gm.namedParameters(), ([name, parameter]) => [name, [...parameter.shape]]);
    same(Object.fromEntries(params), it.params_after, "parameters");
  }
}

/** @type {(replace: () => unknown, wanted: string) => void} */
function refused(replace, wanted) {
  try {
    replace();
  } catch (error) {
    if (!(error instanceof RewriteError)) throw error;
    // PyTorch's `an pattern` is a slip of the pen.
    if (error.message.includes(wanted.replace("an pattern", "a pattern"))) return;
    throw new Difference(`refused with ${error.message} instead of ${wanted}`);
  }
  throw new Difference("nothing was refused");
}

/** The parameters and modules of the generator, of which the corpus has the names only. */
const SIZES = new Map([
  ["a", 2],
  ["b", 3],
  ["q", 5],
  ["c", 7],
]);
const CLASSES = new Map([
  ["sig", "Sigmoid"],
  ["act", "ReLU"],
]);

/** @type {(encoded: EncodedGraph, classes: { readonly [name: string]: string }) => GraphModule} */
function moduleOf(encoded, classes) {
  const gm = GraphModule.ofGraph(build(encoded));
  for (const { op, target } of encoded.nodes) {
    if (op === "get_attr") gm.registerParameter(target, new Parameter(torch.zeros([SIZES.get(target) ?? 1])));
    if (op === "call_module") gm.addSubmodule(target, named(classes[target] ?? CLASSES.get(target) ?? "Module"));
  }
  return gm;
}

/**
 * A module of a class that only has a name.
 * @type {(name: string) => Module}
 */
function named(name) {
  const classes = { [name]: class extends Module {} };
  const Named = /** @type {typeof Module} */ (classes[name]);
  return new Named();
}
