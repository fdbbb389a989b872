/**
 * What passes are given: what is no traced module is refused by what to do.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import { GraphModule } from "../graph/module.ts";

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
