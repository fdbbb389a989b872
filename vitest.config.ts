import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** The checks of recorded data are written against the package; the suite runs them against its source. */
const alias = [{ find: /^tracefx$/, replacement: fileURLToPath(new URL("ts/src/index.ts", import.meta.url)) }];

/** Where the host evaluates no text, ESLint and webpack do not run: they generate code themselves. */
const needsEval = [
  "ts/test/lint/rule.test.ts",
  "ts/test/plugin/bundlers.test.ts",
  "ts/test/plugin/bundledPrograms.test.ts",
];
const isEvalForbidden = process.env["NODE_OPTIONS"]?.includes("--disallow-code-generation-from-strings") === true;

export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: "node",
          // A hang is found all the same; a busy machine is no failure.
          testTimeout: 30_000,
          setupFiles: ["ts/test/setup.ts"],
          include: ["ts/test/**/*.test.ts", "tests/**/*.test.ts"],
          exclude: ["tests/browser/**", ...(isEvalForbidden ? needsEval : [])],
        },
      },
      {
        test: { name: "browser", testTimeout: 60_000, include: ["tests/browser/**/*.test.ts"] },
      },
    ],
  },
});
