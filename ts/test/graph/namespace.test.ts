import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ILLEGAL_NAMES } from "../../../bindings/names.ts";
import { Namespace } from "../../src/graph/namespace.ts";

describe("Namespace", () => {
  test("NM-03: avoids the names that PyTorch avoids", () => {
    const recorded = new URL("../../../tests/fixtures/graphs/illegal_names.json", import.meta.url);
    expect([...ILLEGAL_NAMES].toSorted()).toEqual(JSON.parse(readFileSync(recorded, "utf8")));
  });

  test("gives ten thousand clashing names without searching from the beginning each time", () => {
    const names = new Namespace();
    const given = Array.from({ length: 10_000 }, () => names.createName("add_1"));
    expect(new Set(given).size).toBe(10_000);
    expect(given.at(-1)).toBe("add_10000");
  });

  test("treats names of JavaScript's own as ordinary", () => {
    const names = new Namespace();
    const wanted = ["__proto__", "constructor", "hasOwnProperty", "__proto__", "toString"];
    expect(wanted.map((it) => names.createName(it))).toEqual([
      "__proto__",
      "constructor",
      "hasOwnProperty",
      "__proto___1",
      "toString",
    ]);
  });

  test("keeps a suffix of too many digits as part of the name", () => {
    const names = new Namespace();
    const long = `a_${"9".repeat(50)}`;
    expect([names.createName(long), names.createName(long)]).toEqual([long, `${long}_1`]);
  });
});
