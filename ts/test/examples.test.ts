/**
 * The examples print what their expected output says; each is imported as it is run, with its top-level code. Those in
 * `models` are modules that print nothing, and have tests of their own.
 */
import { readdirSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";

const FOLDER = new URL("../examples/", import.meta.url);

afterEach(() => vi.restoreAllMocks());

const names = readdirSync(FOLDER).filter((name) => name.endsWith(".ts"));

test.each(names)("%s", async (name) => {
  const lines: string[] = [];
  vi.spyOn(console, "log").mockImplementation((...parts) => void lines.push(parts.map(String).join(" ")));
  await import(new URL(name, FOLDER).pathname);
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(new URL(`expected/${name}.txt`, FOLDER).pathname);
});
