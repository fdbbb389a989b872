import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import {
  annotate,
  Dyn,
  evaluateConditionalWithConstraints,
  Graph,
  GraphModule,
  GraphTypeChecker,
  inferSymbolicTypes,
  init,
  isConsistent,
  isMorePrecise,
  load,
  nn,
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
} from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(async () => {
  await init();
});

function typesOf(gm: GraphModule): Record<string, string | undefined> {
  return Object.fromEntries([...gm.graph.nodes].map((node) => [node.name, node.type]));
}

describe("TensorType", () => {
  it("refuses what is no dimension", () => {
    expect(() => new TensorType(3 as never)).toThrow("3 is no dimension of a TensorType");
    for (const stray of [null, undefined, 2.5]) {
      expect(() => new TensorType([1, stray as never])).toThrow(`${String(stray)} is no dimension of a TensorType`);
    }
    expect(() => new GraphTypeChecker(new nn.ReLU() as never)).toThrow("GraphTypeChecker takes a GraphModule");
  });

  it("compares by what is known", () => {
    const [image, known] = [new TensorType([1, Dyn, 3]), new TensorType([1, 2, 3])];
    expect(isConsistent(image, known) && isConsistent(Dyn, image) && isConsistent(2, Dyn)).toBe(true);
    expect(isConsistent(known, new TensorType([1, 2]))).toBe(false);
    expect(isMorePrecise(known, image)).toBe(true);
    expect(isMorePrecise(image, known)).toBe(false);
  });

  it("is written and read in PyTorch's notation", () => {
    for (const type of [new TensorType([1, Dyn]), new TensorType([7]), new TensorType([])]) {
      expect(type.equals(TensorType.parse(String(type)))).toBe(true);
    }
    expect(String(new TensorType([1, Dyn]))).toBe("TensorType[(1, Dyn)]");
    expect(TensorType.parse("Dyn")).toBe(Dyn);
    expect(TensorType.parse("int")).toBeUndefined();
  });

  it("annotates a traced value once", () => {
    const gm = symbolicTrace((x: Tensor) => torch.flatten(annotate(x, new TensorType([2, 3, Dyn]))));
    expect([...gm.graph.nodes][0]?.type).toBe("TensorType[(2, 3, Dyn)]");
    expect(() => symbolicTrace((x: Tensor) => annotate(annotate(x, Dyn), Dyn))).toThrow(RewriteError);
    expect(annotate(3, Dyn)).toBe(3);
  });
});

/** A module whose input has this type. */
function traced(module: nn.Module, type: TensorType): GraphModule {
  const gm = symbolicTrace(module);
  const [input] = gm.graph.nodes;
  if (input !== undefined) input.type = String(type);
  return gm;
}

const network = () =>
  new nn.Sequential(
    new nn.Conv2d(3, 4, 3, { padding: 1 }),
    new nn.BatchNorm2d(4),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.AdaptiveAvgPool2d([2, 2]),
  );

describe("the gradual type checker", () => {
  it("annotates the nodes in place", () => {
    const gm = traced(network(), new TensorType([Dyn, 3, 8, Dyn]));
    const before = [...gm.graph.nodes];
    expect(new GraphTypeChecker(gm).typeCheck()).toBe(true);
    expect([...gm.graph.nodes]).toEqual(before);
    expect(Object.values(typesOf(gm))).toEqual([
      "TensorType[(Dyn, 3, 8, Dyn)]",
      "TensorType[(Dyn, 4, 8, Dyn)]",
      "TensorType[(Dyn, 4, 8, Dyn)]",
      "TensorType[(Dyn, 4, 8, Dyn)]",
      "TensorType[(Dyn, 4, 4, Dyn)]",
      "TensorType[(Dyn, 4, 2, 2)]",
      "TensorType[(Dyn, 4, 2, 2)]",
    ]);
  });

  it("knows convolutions whose padding has a name, and refuses pools that it does not know", () => {
    const typeOf = (module: nn.Module, ...dims: (number | typeof Dyn)[]) => {
      const gm = traced(new nn.Sequential(module), new TensorType(dims));
      new GraphTypeChecker(gm).typeCheck();
      return Object.values(typesOf(gm))[1];
    };
    const same = new nn.Conv2d(3, 4, [3, 4], { padding: "same", dilation: [1, 2] });
    expect(typeOf(same, 1, 3, 8, Dyn)).toBe("TensorType[(1, 4, 8, Dyn)]");
    const valid = new nn.Conv2d(3, 4, [3, 2], { padding: "valid", stride: [1, 2] });
    expect(typeOf(valid, 1, 3, 8, 9)).toBe("TensorType[(1, 4, 6, 4)]");
    expect(typeOf(new nn.AdaptiveAvgPool2d([5, null]), Dyn, 3, 8, 9)).toBe("TensorType[(Dyn, 3, 5, 9)]");
    expect(() => typeOf(valid, 1, 3, 2, 9)).toThrow(
      /the height 2: it is 3 long, and there is a padding of 0 \(at %_?0\)/u,
    );
    expect(() => typeOf(new nn.MaxPool2d(2, { ceilMode: true }), 1, 3, 5, 5)).toThrow(/No inference rule/u);
    const gm = traced(new nn.Sequential(same), new TensorType([1, 3, 8, 8]));
    const { answer, variables } = transformAllConstraints(gm);
    expect(answer.types[variables[1] ?? ""]).toBe("TensorType[(1, 4, 8, 8)]");
  });

  it("refuses types that do not fit, and changes nothing", () => {
    const gm = traced(network(), new TensorType([1, 5, 8, 8]));
    expect(() => new GraphTypeChecker(gm).typeCheck()).toThrow(/Cannot apply 0 with input type/u);
    expect(Object.values(typesOf(gm)).filter((type) => type !== undefined)).toHaveLength(1);
  });

  it("names unknown sizes, and says what follows from them", () => {
    const gm = traced(new nn.Sequential(new nn.Conv2d(3, 4, 3), new nn.ReLU()), new TensorType([Dyn, 3, Dyn, 8]));
    new GraphTypeChecker(gm).typeCheck();
    inferSymbolicTypes(gm);
    const types = Object.values(typesOf(gm));
    const [, batch, height] = /^TensorType\[\((~\d+), 3, (~\d+), 8\)\]$/u.exec(types[0] ?? "") ?? [];
    expect(types[1]).toBe(`TensorType[(${batch}, 4, ${height} - 2, 6)]`);
  });
});

function sum(a: TensorType, b: TensorType): GraphModule {
  return symbolicTrace((x: Tensor, y: Tensor) => torch.add(annotate(x, a), annotate(y, b)));
}

describe("constraints", () => {
  it("refuse what is no module, no node and no option", () => {
    const gm = sum(new TensorType([2]), new TensorType([2]));
    expect(() => transformAllConstraints(null as never)).toThrow("transformAllConstraints takes a GraphModule");
    expect(() => transformAllConstraints(gm, { bugdet: 1 } as never)).toThrow("has no option `bugdet`");
    expect(() => evaluateConditionalWithConstraints(gm, null as never)).toThrow("takes a Node");
    expect(() => evaluateConditionalWithConstraints({} as never, null as never)).toThrow("takes a GraphModule");
    const [node] = gm.graph.nodes;
    for (const require of [3, [3], [node]]) {
      expect(() => transformAllConstraints(gm, { require } as never)).toThrow("takes pairs of a node and a type");
    }
    expect(() => transformAllConstraints(gm, { require: [["x", Dyn]] } as never)).toThrow("takes a Node");
    expect(() => transformAllConstraints(gm, { require: [[node, [2]]] } as never)).toThrow("takes a TensorType or Dyn");
    expect(() => symbolicTrace((x: Tensor) => annotate(x, [2, 3] as never))).toThrow("annotate takes a TensorType");
  });

  it("refuse what is no solver, program or range", async () => {
    const solver = expect.objectContaining({ message: expect.stringContaining("takes a solver that can be asked") });
    await expect(solveWith({ verdict: "sat", smtLib: "" }, null as never)).rejects.toEqual(solver);
    const gm = sum(new TensorType([2]), new TensorType([2]));
    await expect(transformAllConstraintsWith(gm, {} as never)).rejects.toEqual(solver);
    const validator = new TranslationValidator();
    await expect(validator.validateWith(undefined as never)).rejects.toEqual(solver);
    expect(() => TranslationValidator.ofProgram(null as never)).toThrow("takes an ExportedProgram");
    expect(() => validator.addVar("s0", [5, 2])).toThrow("not s0 and [5, 2]");
    expect(() => validator.addVar(3 as never)).toThrow("takes a symbol");
  });

  it("say whether there are inputs for which a graph runs", () => {
    const fits = transformAllConstraints(sum(new TensorType([2, 1]), new TensorType([3])));
    expect(fits.answer.verdict).toBe("sat");
    expect(fits.generated).toContain("apply-broadcasting");
    expect(transformAllConstraints(sum(new TensorType([2, 4]), new TensorType([3]))).answer.verdict).toBe("unsat");
  });

  it("give the type of a node, and refuse another", () => {
    const gm = sum(new TensorType([2, 1]), new TensorType([3]));
    const node = [...gm.graph.nodes][2];
    if (node === undefined) throw new Error("the sum is the third node");
    const { answer, variables } = transformAllConstraints(gm);
    expect(answer.types[variables[2] ?? ""]).toBe("TensorType[(2, 3)]");
    const verdict = (...dims: number[]) =>
      transformAllConstraints(gm, { require: [[node, new TensorType(dims)]] }).answer.verdict;
    expect([verdict(2, 3), verdict(3, 2)]).toEqual(["sat", "unsat"]);
  });

  it("decide conditions on sizes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    x.type = String(new TensorType([4, Dyn]));
    const size = graph.callMethod("size", [x, 0]);
    const isLarge = graph.callFunction("operator.gt", [size, 2]);
    graph.output(isLarge);
    const { condition, negation } = evaluateConditionalWithConstraints(GraphModule.ofGraph(graph), isLarge);
    expect([condition.verdict, negation.verdict]).toEqual(["sat", "unsat"]);
  });

  it("are text for another solver, which is asked what the engine does not know", async () => {
    const gm = sum(new TensorType([2, 1]), new TensorType([3]));
    expect(toSmtLib(gm)).toMatch(/^\(declare-datatypes[^]*\(check-sat\)\n\(get-model\)\n$/u);
    const asked: string[] = [];
    const other = { ask: (text: string) => Promise.resolve(asked.push(text) > 1 ? "unsat\n" : "unknown\n") };
    expect(await solveWith({ verdict: "sat", smtLib: "" }, other)).toBe("sat");
    expect(await solveWith({ verdict: "unknown", smtLib: "a" }, other)).toBe("unknown");
    expect(await solveWith({ verdict: "unknown", smtLib: "b" }, other)).toBe("unsat");
    expect(asked).toEqual(["a", "b"]);
  });
});

describe("the validator of guards", () => {
  it("knows what follows, and shows sizes where it does not", () => {
    const validator = new TranslationValidator();
    validator.addVar("s0", [2, null]);
    validator.addSourceExpr("Mod(s0, 2) == 0");
    validator.addTargetExpr("Mod(s0, 4) == 0");
    expect(validator.validate().validation).toBe("valid");
    validator.addSourceExpr("s0 < 100");
    expect(() => validator.validate()).toThrow(/failed source expression: s0 < 100/u);
  });

  it("knows the symbols that were added", () => {
    const validator = new TranslationValidator();
    validator.addSourceExpr("s0 > 2");
    expect(() => validator.validate()).toThrow(/the symbol s0 of s0 > 2 was not added/u);
  });

  it("has the first guard that does not follow, and its node", () => {
    const validator = new TranslationValidator();
    for (const name of ["s0", "s1"]) validator.addVar(name, [1, null]);
    const guards = [
      ["s0 >= 2", "s0 >= 2"],
      ["s0 == s1", "s0 <= s1"],
      ["s1 < 9", "s1 < 9"],
    ] as const;
    for (const [at, [source, target]] of guards.entries()) {
      validator.addTargetExpr(target);
      validator.addSourceExpr(source, `guard_${at}`);
    }
    const failure = thrown(() => validator.bisect());
    expect(failure).toBeInstanceOf(RewriteError);
    expect(failure).toMatchObject({
      kind: "VerifyFailed",
      node: "guard_1",
      reason: "translation validation failed when evaluating: s0 == s1",
    });
    validator.addAssertion("s1 <= s0");
    validator.bisect();
  });

  it("takes the guards of a program", async () => {
    const program = await load(
      readFileSync(new URL("../../../tests/fixtures/programs/unbacked_item/model.pt2", import.meta.url)),
    );
    const validator = TranslationValidator.ofProgram(program);
    expect(validator.validate().validation).toBe("valid");
    validator.bisect();
    validator.addSourceExpr("u0 < 6", "asked");
    expect(() => validator.validate()).toThrow(/failed source expression: u0 < 6/u);
    expect(() => validator.bisect()).toThrow(/when evaluating: u0 < 6 \(at %asked\)/u);
    // Without its last assertion, nothing holds the number below 7.
    const asserts = program.graph.findNodes({ op: "call_function", target: "torch.ops.aten._assert_scalar.default" });
    const last = [...asserts].at(-1);
    if (last === undefined) throw new Error("the program asserts what it expects of the number");
    program.graph.eraseNode(last);
    expect(() => TranslationValidator.ofProgram(program).validate()).toThrow(/failed source expression: u0 <= 6/u);
  });
});
