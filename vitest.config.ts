import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["ts/test/**/*.test.ts", "tests/**/*.test.ts"],
  },
});
