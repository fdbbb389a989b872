import { beforeAll, describe, expect, it } from "vitest";
import {
  ArchiveError,
  annotate,
  Dyn,
  type GraphModule,
  init,
  RewriteError,
  solveWith,
  symbolicTrace,
  type Tensor,
  TensorType,
  torch,
  toSmtLib,
  transformAllConstraints,
  transformAllConstraintsWith,
  TranslationValidator,
  UsageError,
} from "../../src/index.ts";
import { Z3 } from "../../src/types/z3.ts";

beforeAll(async () => {
  await init();
});

/** A sum of three cubes: nobody finds one quickly, and nobody can say that there is none. */
const HARD = `${["x", "y", "z"].map((name) => `(declare-const ${name} Int)`).join("")}
(assert (= (+ (* x x x) (* y y y) (* z z z)) 114))
(check-sat)
(get-model)
`;

function sum(a: TensorType, b: TensorType): GraphModule {
  return symbolicTrace((x: Tensor, y: Tensor) => torch.add(annotate(x, a), annotate(y, b)));
}

describe("Z3", () => {
  it("answers with sizes, with a refusal, and one question after the other", async () => {
    await using z3 = await Z3.load();
    const square = "(declare-const |s 0| Int)(assert (= (* |s 0| |s 0|) 49))(assert (> |s 0| 0))(check-sat)(get-model)";
    const answers = await Promise.all([z3.ask(square), z3.ask("(assert false)(check-sat)(get-model)")]);
    expect(answers[0].split(/\s+/u)).toEqual(["sat", "(", "(define-fun", "|s", "0|", "()", "Int", "7)", ")", ""]);
    expect(answers[1]).toBe("unsat\n");
    // What one question says is nothing to the next.
    expect(await z3.ask("(declare-const |s 0| Bool)(check-sat)")).toMatch(/^sat\n/u);
  });

  it("says of a graph what the engine says, and answers where the engine gives up", async () => {
    await using z3 = await Z3.load();
    const fits = sum(new TensorType([2, Dyn]), new TensorType([3]));
    const clashes = sum(new TensorType([2, 4]), new TensorType([3]));
    for (const [gm, verdict] of [
      [fits, "sat"],
      [clashes, "unsat"],
    ] as const) {
      expect(transformAllConstraints(gm).answer.verdict).toBe(verdict);
      expect(await solveWith({ verdict: "unknown", smtLib: toSmtLib(gm) }, z3)).toBe(verdict);
    }
  });

  it("gives the types of nodes where the engine gives up", async () => {
    await using z3 = await Z3.load();
    const gm = sum(new TensorType([2, 1]), new TensorType([3]));
    const { answer, variables } = await transformAllConstraintsWith(gm, z3, { budget: 0 });
    expect(answer.verdict).toBe("sat");
    expect(answer.types[variables[2] ?? ""]).toBe("TensorType[(2, 3)]");
  });

  it("proves guards that the engine leaves open, and refutes them with sizes", async () => {
    await using z3 = await Z3.load();
    const validator = new TranslationValidator();
    for (const name of ["s0", "s1"]) validator.addVar(name, [2, null]);
    validator.addTargetExpr("s0*s0 + s1*s1 < 2*s0*s1 + 1");
    validator.addSourceExpr("s0*s0*s0 <= s1*s1*s1");
    expect((await validator.validateWith(z3)).validation).toBe("valid");
    const other = new TranslationValidator();
    for (const name of ["s0", "s1"]) other.addVar(name, [2, null]);
    other.addTargetExpr("s0*s0 == s1*s1*s1 + 17");
    other.addSourceExpr("s0 + s1 < 60");
    await expect(other.validateWith(z3)).rejects.toThrow(/model: s0 = 282[^]*failed source expression: s0 \+ s1 < 60/u);
  });

  it("does not think longer than it may, and can be asked afterwards", async () => {
    await using z3 = await Z3.load({ timeout: 200 });
    const late = await z3.ask(HARD).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(ArchiveError);
    expect(late).toMatchObject({ kind: "LimitExceeded", reason: "Z3 did not answer within 200 milliseconds" });
    expect(await z3.ask("(check-sat)")).toMatch(/^sat/u);
  });

  it("refuses text that is none, a question after its end, and times that are none", async () => {
    const z3 = await Z3.load();
    const refusal = await z3.ask("(assert (> b 3))(check-sat)").catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(RewriteError);
    expect(String(refusal)).toMatch(/unknown constant b/u);
    const pending = z3.ask(HARD).catch((error: unknown) => String(error));
    await z3.close();
    await z3.close();
    expect(await pending).toMatch(/Z3 was closed/u);
    await expect(z3.ask("(check-sat)")).rejects.toThrow(/Z3 was closed/u);
    await expect(Z3.load({ timeout: 0 })).rejects.toThrow(UsageError);
  });
});
