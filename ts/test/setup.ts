/** What every file of tests compares in its own way, and what it has to tell of itself. */
import { afterAll, expect } from "vitest";
import { NodeBase } from "../src/graph/args.ts";
import { Module } from "../src/nn/module.ts";
import { Tensor } from "../src/tensor/tensor.ts";
import { watchHostCode } from "./hostCode.ts";
import { CAN_DIFFER } from "./withoutEval.ts";

// Objects whose contents are private, of which any two would be equal.
expect.addEqualityTesters([
  // Nodes and modules are the same only as themselves.
  (a: unknown, b: unknown): boolean | undefined =>
    (a instanceof NodeBase && b instanceof NodeBase) || (a instanceof Module && b instanceof Module)
      ? a === b
      : undefined,
  // Tensors are equal where their elements are.
  function sameTensors(a: unknown, b: unknown, testers): boolean | undefined {
    if (!(a instanceof Tensor && b instanceof Tensor)) return undefined;
    if (a === b) return true;
    if (a.dtype !== b.dtype || !this.equals(a.shape, b.shape)) return false;
    return this.equals(a.toArray(), b.toArray(), testers);
  },
]);

// Those on the list are not watched: what `eval` makes under a watch cannot import, which webpack's loaders do.
const path = expect.getState().testPath?.replaceAll("\\", "/") ?? "";
const [, file = ""] = /\/(ts\/test\/.*)$/.exec(path) ?? [];
if (file !== "" && !CAN_DIFFER.includes(file)) {
  const called = new Set<string>();
  watchHostCode((name) => called.add(name));
  afterAll(() => {
    if (called.size === 0) return;
    throw new Error(
      `${file} calls ${[...called].join(", ")}, so that it can differ where no text is evaluated: list it in ts/test/withoutEval.ts`,
    );
  });
}
