/**
 * A tracer that records assertions: `torch.fx.experimental.rewriter.RewritingTracer`.
 *
 * @module
 */
import { answerMembersOf } from "../base/pythonNames.ts";
import type { TracedValue } from "./proxy.ts";
import { Tracer } from "./tracer.ts";

/** What asserts in JavaScript. */
const ASSERTIONS: ReadonlySet<string> = new Set(["console.assert", "assert"]);

/**
 * A tracer that records `console.assert(condition, "message")` and `assert(condition, "message")` of traced values as `torch._assert`, where
 * other tracers refuse them: `RewritingTracer`. PyTorch's rewrites the source as it traces; here the build plugin (`tracefx/plugin`,
 * `tracefx/register`) has done that before, so that no text is run. Sources that it has not seen are refused as by any tracer. A message
 * that is no literal is left out.
 *
 * @example
 * ```ts
 * const f = (x: Tensor) => {
 *   console.assert(x.sum().gt(0), "a sum above zero");
 *   return x.relu();
 * };
 * const gm = symbolicTrace(f, { tracer: new RewritingTracer() }); // torch._assert(gt, "a sum above zero")
 * ```
 */
export class RewritingTracer extends Tracer {
  override toBool(value: TracedValue, construct?: string, message = ""): boolean {
    if (construct === undefined || !ASSERTIONS.has(construct)) return super.toBool(value, construct);
    this.createProxy("call_function", "torch._assert", [value, message], {});
    return true;
  }
}

answerMembersOf(RewritingTracer);
