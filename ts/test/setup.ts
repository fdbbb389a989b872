/** What every test of the suite compares in its own way. */
import { expect } from "vitest";
import { NodeBase } from "../src/graph/args.ts";

// A node is the same only as itself. What it holds is private, so otherwise any two would be equal.
expect.addEqualityTesters([
  (a: unknown, b: unknown): boolean | undefined =>
    a instanceof NodeBase || b instanceof NodeBase ? a === b : undefined,
]);
