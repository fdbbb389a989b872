/**
 * What passes are given: what is no traced module is refused by what to do.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";

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
