/**
 * `docs/api-coverage.md` is what the sources say now. `npm run -s api-coverage` prints it again.
 */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as tracefx from "../../ts/src/index.ts";
import { publicNames } from "../../ts/test/surface.ts";
import { coverage } from "./coverage.ts";

test("the table of PyTorch's names is up to date", async () => {
  await expect(coverage()).toMatchFileSnapshot(fileURLToPath(new URL("../../docs/api-coverage.md", import.meta.url)));
});

test("everything that the package exports is found in its sources", () => {
  const names = [...publicNames().keys()];
  for (const name of Object.keys(tracefx)) {
    expect(
      names.some((it) => it === name || it.startsWith(`${name}.`)),
      name,
    ).toBe(true);
  }
});
