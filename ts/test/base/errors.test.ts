import { describe, expect, it } from "vitest";
import { ERRORS } from "../../../bindings/errors.ts";
import { EngineError, FxError, fxError, OperatorError, type ErrorName } from "../../src/base/errors.ts";

describe("fxError", () => {
  it("makes an error of the class that the code belongs to", () => {
    const error = fxError("ShapeMismatch", "mat1 is 2x3 but mat2 is 4x5", { op: "aten.mm.default", node: "mm_1" });
    expect(error).toBeInstanceOf(OperatorError);
    expect(error).toBeInstanceOf(FxError);
    expect(error.code).toBe("FX0301");
    expect(error.name).toBe("OperatorError");
    expect(error.message).toBe("FX0301: mat1 is 2x3 but mat2 is 4x5 (at %mm_1, aten.mm.default)");
  });

  it("puts notes and help on lines of their own", () => {
    const error = fxError("Internal", "a list was empty", {
      op: "aten.cat.default",
      notes: ["seen"],
      help: "report it",
    });
    expect(error).toBeInstanceOf(EngineError);
    expect(error.message).toBe("FX0902: a list was empty (in aten.cat.default)\n  note: seen\n  help: report it");
  });

  it("keeps the cause", () => {
    const cause = new Error("no such file");
    expect(fxError("Io", "cannot read it", { cause }).cause).toBe(cause);
    expect("cause" in fxError("Io", "cannot read it")).toBe(false);
  });

  it("knows a class for every code", () => {
    for (const [kind, { code, class: name }] of Object.entries(ERRORS)) {
      const error = fxError(kind as ErrorName, "it");
      expect([error.code, error.name]).toEqual([code, name]);
    }
  });
});
