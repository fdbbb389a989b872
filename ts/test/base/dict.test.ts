import { describe, expect, it } from "vitest";
import { Dict } from "../../src/base/values.ts";
import { thrown } from "../thrown.ts";

describe("Dict", () => {
  it("takes pairs from anything that gives them", () => {
    const pairs = new Map([
      ["a", 1],
      ["b", 2],
    ]);
    for (const given of [pairs, pairs.entries(), [...pairs], new Dict(pairs)]) {
      expect([...new Dict(given)]).toEqual([
        ["a", 1],
        ["b", 2],
      ]);
    }
    expect([...new Dict(), ...new Dict(null)]).toEqual([]);
  });

  it.each([["ab"], [[1]], [{ a: 1 }], [7]])("refuses %j", (given) => {
    expect(thrown(() => new Dict(given as never)).code).toBe("FX0304");
  });
});
