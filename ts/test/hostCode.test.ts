import { spawnSync } from "node:child_process";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { watchFile } from "./hostCode.ts";
import { CAN_DIFFER } from "./withoutEval.ts";

/** Each way to run other code. Without `eval` the first two throw, which is told all the same. */
const WAYS: Readonly<Record<string, () => unknown>> = {
  // oxlint-disable-next-line no-eval -- it is what is watched
  eval: () => eval("1"),
  // oxlint-disable-next-line no-new-func -- it is what is watched
  Function: () => new Function("return 1"),
  spawnSync: () => spawnSync(process.execPath, ["--version"]),
  Worker: () => new Worker("", { eval: true }).terminate(),
};

test.each(Object.entries(WAYS))("a file that calls %s and is not listed fails", (name, call) => {
  const check = watchFile("ts/test/unlisted.test.ts");
  check();
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(EvalError);
  }
  expect(check).toThrow(`ts/test/unlisted.test.ts calls ${name}, so that it can differ where no text is evaluated`);
});

test("a file that is listed may call them", () => {
  const check = watchFile(CAN_DIFFER[0] as string);
  spawnSync(process.execPath, ["--version"]);
  check();
});
