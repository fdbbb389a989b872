/**
 * Keyword arguments of calls of graphs.
 *
 * @module
 */
import { camelCase, isOptions } from "../base/naming.ts";
import { CodeGen } from "./codegen/codegen.ts";
import type { Graph } from "./graph.ts";

/**
 * The arguments of a call, with the properties of a trailing object put in the places of the inputs that they name, in
 * either spelling. An object that names anything else is an argument like the others, and so is any object where the
 * graph has a code generator that reads the arguments in its own way.
 */
export function placeKeywords(graph: Graph, given: readonly unknown[]): readonly unknown[] {
  const options = given.at(-1);
  if (!isOptions(options) || graph.codegen.processInputs !== CodeGen.prototype.processInputs) return given;
  const inputs = graph.findNodes({ op: "placeholder" });
  const placed = given.slice(0, -1);
  const names = Object.keys(options);
  // What stands for no keyword arguments is one only where something else could not be meant.
  if (names.length === 0) return given.length > inputs.length ? placed : given;
  for (const name of names) {
    const at = inputs.findIndex(({ target }) => target === name || camelCase(target) === name);
    if (at < given.length - 1) return given;
    placed[at] = options[name];
  }
  return Array.from(placed);
}
