/** What every file of tests compares in its own way, and what it has to tell of itself. */
import { afterAll, expect } from "vitest";
import { NodeBase } from "../src/graph/args.ts";
import { Module } from "../src/nn/module.ts";
import { Tensor } from "../src/tensor/tensor.ts";
import { watchFile } from "./hostCode.ts";

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

const path = expect.getState().testPath?.replaceAll("\\", "/") ?? "";
const [, file] = /\/(ts\/test\/.*)$/.exec(path) ?? [];
if (file !== undefined) afterAll(watchFile(file));
