/**
 * The kinds `codegen` and `symbolic_trace`: a graph as text and as code.
 *
 * Of the code the outline is compared: the signature with types and defaults, the statements in order, what each of them
 * sets, uses and releases, and which line is which node's.
 *
 * @module
 */
import { PyTreeCodeGen } from "tracefx";
import { javaScriptOutline, pythonOutline } from "./codeOutline.mjs";
import { build, Difference, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ before: EncodedGraph | null, after?: EncodedGraph, code?: string, graph_str?: string,
 *   lineno_map?: { readonly [line: string]: number | null } }} Case
 */

/** Prints and generates. */
export function checkCode(
  /** @type {Case} */ { before, after = before ?? undefined, code, graph_str: text, lineno_map: map },
) {
  if (after === undefined || code === undefined) throw new Difference("the case has no graph");
  const graph = build(after);
  same(String(graph), text, "the text");
  const origArgs = /tree_flatten_spec\(\[(.*?)\]/.exec(code)?.[1]?.split(", ");
  if (origArgs !== undefined) {
    graph.setCodegen(new PyTreeCodeGen({ origArgs, inSpec: { flatten: identity }, outSpec: { unflatten: identity } }));
  }
  const nodes = [...graph.nodes];
  const { source, lineMap } = graph.generateCode();
  same(graph.generateCode().source, source, "the code, generated again");
  const names = new Set(nodes.map((node) => node.name));
  const wanted = pythonOutline(code, names);
  same(javaScriptOutline(source, names), wanted, "the code");
  if (map === undefined) return;
  // PyTorch has a line more for each input whose name is not its parameter's, and none for `**options` behind `*rest`.
  const theirs = Object.values(map).map((at) => (at === null ? undefined : nodes[at]));
  const lines = source.trimEnd().split("\n").slice(1, -1);
  const ours = lines.map((_, at) => lineMap.get(at + 2));
  // The last of theirs is the end of the file.
  same(namesOf(ours), namesOf(theirs.slice(0, -1)), "the nodes of the lines");
}

/** @type {(nodes: (import("tracefx").Node | undefined)[]) => (string | undefined)[]} */
function namesOf(nodes) {
  return nodes.filter((it) => it?.op !== "placeholder").map((it) => it?.name);
}

/** @type {(values: readonly unknown[]) => readonly unknown[]} */
function identity(values) {
  return values;
}
