import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { CAN_DIFFER, NEEDS_EVAL } from "./ts/test/withoutEval.ts";

/** The checks of recorded data are written against the package; the suite runs them against its source. */
const alias = [{ find: /^tracefx$/, replacement: fileURLToPath(new URL("ts/src/index.ts", import.meta.url)) }];

/** Whether this run is the second one, of what can differ where the host evaluates no text: ts/test/withoutEval.ts says why. */
const isEvalForbidden = process.env["NODE_OPTIONS"]?.includes("--disallow-code-generation-from-strings") === true;

// A file that moved would not run again, and nothing would say so.
const missing = CAN_DIFFER.filter((it) => !existsSync(new URL(it, import.meta.url)));
if (missing.length > 0) throw new Error(`ts/test/withoutEval.ts lists ${missing.join(", ")}, which is not there`);

export default defineConfig({
  test: {
    // By default one processor is left to others, which is half of two.
    maxWorkers: "100%",
    projects: [
      {
        resolve: { alias },
        test: {
          name: "node",
          // A hang is found all the same; a busy machine is no failure, and cargo runs at the same time.
          testTimeout: 60_000,
          setupFiles: ["ts/test/setup.ts"],
          include: isEvalForbidden
            ? CAN_DIFFER.filter((it) => !NEEDS_EVAL.includes(it))
            : ["ts/test/**/*.test.ts", "tests/**/*.test.ts"],
          exclude: ["tests/browser/**"],
        },
      },
      {
        test: { name: "browser", testTimeout: 60_000, include: ["tests/browser/**/*.test.ts"] },
      },
    ],
  },
});
