import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** The checks of recorded data are written against the package; the suite runs them against its source. */
const alias = [{ find: /^tracefx$/, replacement: fileURLToPath(new URL("ts/src/index.ts", import.meta.url)) }];

export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: "node",
          setupFiles: ["ts/test/setup.ts"],
          include: ["ts/test/**/*.test.ts", "tests/**/*.test.ts"],
          exclude: ["tests/browser/**"],
        },
      },
      {
        test: { name: "browser", include: ["tests/browser/**/*.test.ts"] },
      },
    ],
  },
});
