/** Whatever JavaScript decides while a module is exported is right, a guard of the program, or refused. */
import { runInThisContext } from "node:vm";
import { beforeAll, describe, expect, test } from "vitest";
import * as tracefx from "../../src/index.ts";
import { init, nn, Tensor } from "../../src/index.ts";
import { rewrite } from "../../src/plugin/rewrite.ts";
import { __tracefx } from "../../src/trace/checked.ts";
import { DECISIONS, isTold, PLACES } from "./decisions.ts";
import { type Make, outcome } from "./outcome.ts";

beforeAll(async () => void (await init()));

const RUNTIME = { __tracefx };

/** The class of a module, as it is written or as the plugin rewrites it. */
function made(source: string, plugin?: { readonly operators: boolean }): Make {
  const written = `module.exports = ${source};`;
  const code = plugin === undefined ? written : (rewrite(written, plugin)?.code ?? written);
  const module: { exports?: unknown } = {};
  const run: unknown = runInThisContext(`(function (module, require, nn, Tensor) {${code}\n})`);
  (run as (...given: unknown[]) => void)(module, () => RUNTIME, nn, Tensor);
  return module.exports as Make;
}

const ALL = Object.entries(DECISIONS);

describe.each(Object.entries(PLACES))("as it is, %s", (_, write) => {
  test.each(ALL)("%s: never wrong for the example", (_name, expression) => {
    const source = write(expression);
    expect(outcome(tracefx, made(source), made(source), [[4, 3, 1]])).toMatch(/^(?:told|right)$/);
  });
});

describe.each(Object.entries(PLACES))("as the plugin rewrites it, %s", (place, write) => {
  describe.each([false, true])("with operators: %s", (operators) => {
    test.each(ALL)("%s", (name, expression) => {
      const source = write(expression);
      const found = outcome(tracefx, made(source), made(source, { operators }));
      expect(found).toBe(isTold(name, place, operators) ? "told" : "right");
    });
  });
});
