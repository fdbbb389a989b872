import { expect, test } from "vitest";
import { functionNamed } from "../../src/functions/table.ts";
import { functionPath } from "../../src/graph/codegen/globals.ts";
import * as exported from "../../src/index.ts";

/** Every function with a name in these namespaces and those inside, by that name. */
function functionsOf(namespaces: readonly unknown[]): Map<string, unknown> {
  const res = new Map<string, unknown>();
  const visit = (value: unknown, depth: number): void => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null || depth > 3) return;
    if (typeof value === "function") {
      if ("target" in value && typeof value.target === "string") res.set(value.target, value);
      return;
    }
    for (const member of Object.values(value)) visit(member, depth + 1);
  };
  for (const namespace of namespaces) visit(namespace, 0);
  return res;
}

function at(path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => Reflect.get(Object(value) as object, name), exported);
}

test("generated code finds the functions of this package where they are", () => {
  const { F, builtins, math, operator, torch } = exported;
  const functions = functionsOf([F, builtins, math, operator, torch]);
  expect(functions.size).toBeGreaterThan(500);
  const misplaced = [...functions.keys()].filter((target) => {
    const path = functionPath(target);
    return path !== undefined && at(path) !== functionNamed(target);
  });
  // An operator that the registry lacks is a function of F alone; the compiler finds it by its name.
  expect(misplaced).toEqual(["torch.conv_tbc"]);
  expect([...functions.keys()].filter((target) => functionPath(target) === undefined)).toEqual([
    "torch.nn.functional._threshold",
  ]);
});
