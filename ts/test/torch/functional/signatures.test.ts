import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { camelCase } from "../../../src/base/naming.ts";
import { signatureOf } from "../../../src/functions/table.ts";
import * as F from "../../../src/torch/functional/index.ts";

const SIGNATURES = JSON.parse(
  readFileSync(new URL("../../../../tests/fixtures/functional/signatures.json", import.meta.url), "utf8"),
) as Readonly<Record<string, string | null>>;

test.each(Object.entries(SIGNATURES))("%s has PyTorch's parameters", (name, signature) => {
  const found: unknown = Reflect.get(F, camelCase(name));
  expect(found).toBeTypeOf("function");
  const { target } = found as { target: string };
  if (signature === null) expect(signatureOf(target)).toMatch(/^\(.*\)$/);
  else expect(signatureOf(target)).toBe(signature);
});
