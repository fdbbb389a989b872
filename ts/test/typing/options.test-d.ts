/** The lists of options that calls are checked against, and what the compiler refuses. Nothing here runs. */
import { checkOptions } from "../../src/base/given.ts";

declare const options: { readonly dtype?: string; readonly out?: number };

export function lists(): void {
  checkOptions("sum", options, ["dtype", "out"]);
  // @ts-expect-error -- `out` is missing
  checkOptions("sum", options, ["dtype"]);
  // @ts-expect-error -- there is no option `outs`
  checkOptions("sum", options, ["dtype", "out", "outs"]);
}
