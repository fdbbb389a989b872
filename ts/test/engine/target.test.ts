import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  lstatSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readPath } from "../../src/engine/source.ts";
import { writeTarget } from "../../src/engine/target.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tracefx-target-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const write = (path: string | URL, text: string): Promise<void> => writeTarget(path, [bytes(text)], undefined);
const text = (name: string): string => readFileSync(at(name), "utf8");

function* failing(): Generator<Uint8Array> {
  yield bytes("half");
  throw new Error("no more");
}

test("a file is written, and another one replaced", async () => {
  await write(at("a"), "first");
  await write(pathToFileURL(at("a")), "2");
  expect([text("a"), readdirSync(folder)]).toEqual(["2", ["a"]]);
});

test("what fails leaves the old file and nothing else", async () => {
  await write(at("old"), "precious");
  for (const name of ["old", "new"]) {
    await expect(writeTarget(at(name), failing(), undefined)).rejects.toThrow("no more");
  }
  expect([text("old"), readdirSync(folder)]).toEqual(["precious", ["old"]]);
  await expect(write(folder, "")).rejects.toThrow("FX");
  await expect(write(at("no/such/folder"), "")).rejects.toThrow("make the folder first, or check the path");
});

describe.skipIf(process.platform === "win32")("where there are permissions, links and devices", () => {
  test("permissions are kept", async () => {
    await write(at("a"), "1");
    for (const mode of [0o600, 0o640, 0o755]) {
      chmodSync(at("a"), mode);
      await write(at("a"), "2");
      expect(statSync(at("a")).mode & 0o7777).toBe(mode);
    }
  });

  test("links are followed and stay", async () => {
    mkdirSync(at("data"));
    symlinkSync("data/target", at("second"));
    symlinkSync(at("second"), at("first"));
    for (const it of ["1", "2"]) {
      await write(at("first"), it);
      expect(text("data/target")).toBe(it);
    }
    expect(lstatSync(at("second")).isSymbolicLink()).toBe(true);
    symlinkSync("round", at("round"));
    await expect(write(at("round"), "")).rejects.toThrow("links do not end");
  });

  test("devices and pipes are written to as they are", async () => {
    await write("/dev/null", "gone");
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
    execFileSync("mkfifo", [at("pipe")]);
    const reading = readFile(at("pipe"), "utf8");
    await write(at("pipe"), "through");
    expect([await reading, statSync(at("pipe")).isFIFO()]).toEqual(["through", true]);
  });

  test("a device is read to its limit", async () => {
    await expect(readPath("/dev/zero", { limits: { stream_bytes: 5_000_000 } })).rejects.toThrow(
      "the limit `stream_bytes` is 5000000",
    );
  });

  test("a pipe is read to its end", async () => {
    execFileSync("mkfifo", [at("pipe")]);
    const writing = write(at("pipe"), "through");
    expect(new TextDecoder().decode(await readPath(at("pipe"), {}))).toBe("through");
    await writing;
  });
});

test("a longer file than the limit is refused by its name", async () => {
  await write(at("a"), "12345");
  expect(await readPath(at("a"), { limits: { archive_bytes: 5 } })).toHaveLength(5);
  await expect(readPath(at("a"), { limits: { archive_bytes: 4 } })).rejects.toThrow("the limit `archive_bytes` is 4");
});
