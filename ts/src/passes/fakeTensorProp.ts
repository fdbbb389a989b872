/**
 * Shapes without running: `torch.fx.passes.fake_tensor_prop`.
 *
 * @module
 */
import type { GraphModule } from "../fx/graphModule.ts";
import { isVal, type Val } from "../graph/val.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { Tensor } from "../tensor/tensor.ts";
import { fxError } from "../base/errors.ts";
import { propagateThroughLeaves } from "./leafGraphs.ts";

/**
 * Notes about each node what it gives, as `meta.val`, without computing any numbers: `FakeTensorProp`. Sizes may be symbolic,
 * where the inputs say so. Functions, methods and operators of Python that are operators are understood. A called module
 * without a graph is traced for its shapes, as it is in evaluation; one whose path depends on its input (`nn.LSTM`) is run on
 * what is known of that, and refused only where it wants a symbolic size as a number.
 *
 * @example
 * ```ts
 * new FakeTensorProp(gm).propagate(tensor([[1, 2, 3]]));
 * ```
 */
export class FakeTensorProp {
  readonly module: GraphModule;

  constructor(module: GraphModule) {
    checkGraphModule("FakeTensorProp", module);
    this.module = module;
  }

  /** Propagates what tensors are, or values of nodes such as `TensorMeta`, one for each input. Gives what the output is. */
  propagate(...inputs: readonly (Tensor | Val)[]): Val | undefined {
    const placeholders = this.module.graph.nodes.toArray().filter((it) => it.op === "placeholder");
    if (inputs.length > placeholders.length) {
      const what = `the graph takes ${placeholders.length} inputs, and ${inputs.length} are given`;
      throw fxError("InputCount", what);
    }
    for (const [at, input] of inputs.entries()) {
      placeholders[at]?.meta.set("val", input instanceof Tensor ? tensorVal(input) : input);
    }
    propagateThroughLeaves(this.module, (module) => void runPass(module, "FakeTensorProp", { notes: "inputs" }));
    const val = this.module.graph.outputNode()?.meta.get("val");
    return isVal(val) ? val : undefined;
  }
}
