import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "node",
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
