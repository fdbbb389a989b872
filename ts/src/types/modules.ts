/**
 * What the rules of types know of `nn` modules.
 *
 * @module
 */
import type { ModuleSpec } from "../../../bindings/passes.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import * as nn from "../nn/index.ts";
import type { Module } from "../nn/module.ts";

type Pair = [number, number];

function pair(it: number | readonly number[]): Pair {
  return typeof it === "number" ? [it, it] : [it[0] ?? 0, it[1] ?? it[0] ?? 0];
}

/** The specification of a module that the rules know. */
function specOf(module: Module): ModuleSpec | undefined {
  if (module instanceof nn.Conv2d) {
    const { inChannels, outChannels, kernelSize, stride, dilation, padding } = module;
    if (padding === "same") return { class: "Conv2d", inChannels, outChannels, window: SAME };
    const numbers = { kernelSize, stride, dilation, padding: padding === "valid" ? 0 : padding };
    return { class: "Conv2d", inChannels, outChannels, window: window(numbers) };
  }
  if (module instanceof nn.MaxPool2d) {
    // The rules know neither windows that stand over the edge nor several results.
    return module.ceilMode || module.returnIndices ? undefined : { class: "MaxPool2d", window: window(module) };
  }
  if (module instanceof nn.BatchNorm2d) return { class: "BatchNorm2d", numFeatures: module.numFeatures };
  if (module instanceof nn.AdaptiveAvgPool2d) {
    const size = module.outputSize;
    const outputSize: [number | null, number | null] =
      typeof size === "number" || size === null ? [size, size] : [size[0] ?? null, size[1] ?? null];
    return { class: "AdaptiveAvgPool2d", outputSize };
  }
  if (module instanceof nn.Linear) {
    return { class: "Linear", inFeatures: module.inFeatures, outFeatures: module.outFeatures };
  }
  if (module instanceof nn.LayerNorm) return { class: "LayerNorm", normalizedShape: [...module.normalizedShape] };
  if (module instanceof nn.Embedding) return { class: "Embedding", embeddingDim: module.embeddingDim };
  if (module instanceof nn.ReLU) return { class: "ReLU" };
  if (module instanceof nn.Dropout) return { class: "Dropout" };
  return undefined;
}

/** What `padding: "same"` is, whatever the kernel is: what comes out has the size of what goes in. */
const SAME = window({ kernelSize: 1, stride: 1, padding: 0, dilation: 1 });

interface Sizes {
  readonly kernelSize: number | readonly number[];
  readonly stride: number | readonly number[];
  readonly padding: number | readonly number[];
  readonly dilation: number | readonly number[];
}

function window({ kernelSize, stride, padding, dilation }: Sizes): {
  kernelSize: Pair;
  stride: Pair;
  padding: Pair;
  dilation: Pair;
} {
  return { kernelSize: pair(kernelSize), stride: pair(stride), padding: pair(padding), dilation: pair(dilation) };
}

/** The specifications of the modules that a graph calls, by path. */
export function moduleSpecs(gm: GraphModule): Record<string, ModuleSpec> {
  const specs: Record<string, ModuleSpec> = {};
  for (const node of gm.graph.nodes) {
    if (node.op !== "call_module") continue;
    const spec = specOf(gm.getSubmodule(String(node.target)));
    if (spec !== undefined) specs[String(node.target)] = spec;
  }
  return specs;
}
