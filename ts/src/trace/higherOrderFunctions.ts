/**
 * The control flow operators of a graph, in the table of functions: they run, and are recorded where a graph is exported.
 *
 * @module
 */
import { defineFunction } from "../functions/table.ts";
import { DTypeArg } from "../base/values.ts";
import { Module } from "../nn/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { autocast, setGradEnabled } from "../torch/contexts.ts";
import { cond, map, scan, whileLoop } from "./controlFlow.ts";
import { type Call, refused } from "./higherOrder.ts";
import { ofPackage } from "./subgraph.ts";

/** Puts them into the table of functions. */
export function installHigherOrder(): void {
  defineFunction(
    "torch.ops.higher_order.cond",
    (predicate: unknown, onTrue: unknown, onFalse: unknown, operands: readonly unknown[]) =>
      cond(predicate as Tensor, graphCall(onTrue, "cond"), graphCall(onFalse, "cond"), [...operands]),
    { signature: "(pred, true_fn, false_fn, operands, /)" },
  );

  defineFunction(
    "torch.ops.higher_order.while_loop",
    (condition: unknown, body: unknown, carried: readonly unknown[], additional: readonly unknown[] = []) => {
      const [test, step] = [graphCall(condition, "while_loop"), graphCall(body, "while_loop")];
      // What stays the same in each step is recorded as what the functions use from around them.
      return whileLoop(
        ofPackage((...values) => test(...values, ...additional) as Tensor),
        ofPackage((...values) => step(...values, ...additional) as readonly unknown[]),
        [...carried],
      );
    },
    { signature: "(cond_fn, body_fn, carried_inputs, additional_inputs=(), /)" },
  );

  defineFunction(
    "torch.ops.higher_order.map_impl",
    (body: unknown, xs: readonly unknown[], args: readonly unknown[] = []) => {
      const call = graphCall(body, "map_impl");
      return map(
        ofPackage((slices: unknown, ...others: unknown[]) => call(...(slices as unknown[]), ...others)),
        xs,
        ...args,
      );
    },
    { signature: "(f, xs, pos_args=[], /)" },
  );

  defineFunction(
    "torch.ops.higher_order.scan",
    (combine: unknown, init: readonly unknown[], xs: readonly unknown[], additional: readonly unknown[] = []) => {
      const call = graphCall(combine, "scan");
      const step: Call = ofPackage((carry, x) => {
        const results = call(...(carry as unknown[]), ...(x as unknown[]), ...additional) as readonly unknown[];
        return [results.slice(0, init.length), results.slice(init.length)];
      });
      const [carry, outputs] = scan(step as (carry: unknown, x: unknown) => readonly [unknown, unknown], init, xs);
      return [...(carry as unknown[]), ...(outputs as unknown[])];
    },
    { signature: "(combine_fn, init, xs, additional_inputs=(), /)" },
  );

  defineFunction(
    "torch.ops.higher_order.wrap_with_set_grad_enabled",
    (isEnabled: unknown, body: unknown, ...args: readonly unknown[]) =>
      setGradEnabled(isEnabled === true, () => graphCall(body, "wrap_with_set_grad_enabled")(...args)),
    { signature: "(enable_grad, wrapped_func, /)" },
  );

  defineFunction(
    "torch.ops.higher_order.wrap_with_autocast",
    (
      deviceType: string,
      dtype: DTypeArg | null,
      enabled: boolean,
      cache: boolean,
      body: unknown,
      ...args: unknown[]
    ) => {
      const options = { enabled, cacheEnabled: cache === true, ...(dtype instanceof DTypeArg && { dtype }) };
      return autocast(deviceType, options, () => graphCall(body, "wrap_with_autocast")(...args));
    },
    { signature: "(device_type, dtype, enabled, cache_enabled, wrapped_func, /)" },
  );
}

function graphCall(graph: unknown, name: string): Call {
  if (graph instanceof Module) return ofPackage((...args) => graph.call(...args));
  throw refused(name, "one of the operands should be a graph", "a get_attr node of a GraphModule gives one");
}
