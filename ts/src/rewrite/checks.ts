/**
 * What passes are given: what is no option is refused by its name, since a misspelt one would do nothing, and what is no
 * traced module by what to do.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import { GraphModule } from "../graph/module.ts";

/**
 * Refuses options that `what` does not have, and what is no object of options.
 *
 * @example
 * ```ts
 * checkOptions("constantFold", options, ["constraintFn", "maxBytes"]);
 * ```
 */
export function checkOptions(what: string, options: object, names: readonly string[]): void {
  const help = `the options are ${names.join(", ")}`;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw fxError("InvalidOption", `${what} takes its options as an object`, { help });
  }
  const stray = Object.keys(options).find((name) => !names.includes(name));
  if (stray !== undefined) throw fxError("InvalidOption", `${what} has no option \`${stray}\``, { help });
}

/**
 * Refuses what has no graph, such as a module that was not traced.
 *
 * @example
 * ```ts
 * checkGraphModule("splitModule", module);
 * ```
 */
export function checkGraphModule(what: string, module: GraphModule): void {
  if (module instanceof GraphModule) return;
  throw fxError("InvalidArgument", `${what} takes a GraphModule`, {
    help: "symbolicTrace(module) makes one of a module or a function",
  });
}
