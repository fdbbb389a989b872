/**
 * The kind `cse`: calls that compute the same, merged in place.
 *
 * @module
 */
import { CSEPass, GraphModule, Module } from "tracefx";
import { build, encode, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ options: { banned_ops: string[] }, before: EncodedGraph, after?: EncodedGraph, modified?: boolean }} Case
 */

/** Merges. */
export function checkCse(/** @type {Case} */ { options, before, after, modified }) {
  const graph = build(before);
  const gm = GraphModule.ofGraph(graph);
  for (const { op, target } of before.nodes) {
    if (op === "call_module" && gm.findAttribute(target) === undefined) gm.addSubmodule(target, new Module());
  }
  const result = new CSEPass({ bannedOps: options.banned_ops }).run(gm);
  same(result?.modified, modified, "whether anything changed");
  same(encode(graph).nodes, after?.nodes, "nodes");
  const { users = {} } = encode(graph);
  for (const [name, wanted] of Object.entries(after?.users ?? {})) same(users[name], wanted, `the users of ${name}`);
}
