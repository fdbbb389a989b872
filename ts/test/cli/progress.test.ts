/** What is told while a command takes long. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { progressOf } from "../../src/cli/progress.ts";

test("progress is told on a terminal until it is over, and not where errors go to a file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-progress-"));
  const [file, terminal] = [join(folder, "file"), join(folder, "terminal")];
  const [notTold, told] = [openSync(file, "w"), openSync(terminal, "w")];
  try {
    const line = progressOf("bench model.pt2", { fd: notTold, isTTY: false }, 0);
    const shown = progressOf("bench model.pt2", { fd: told, isTTY: true }, 0);
    await vi.waitFor(() => expect(readFileSync(terminal, "utf8")).toContain("⠙ bench model.pt2 (0s)"));
    await Promise.all([line[Symbol.asyncDispose](), shown[Symbol.asyncDispose]()]);
    expect(readFileSync(terminal, "utf8").endsWith("\r\u001b[2K")).toBe(true);
    expect(readFileSync(file, "utf8")).toBe("");
  } finally {
    for (const fd of [notTold, told]) closeSync(fd);
    rmSync(folder, { recursive: true });
  }
});
