/**
 * Rules of one's own for gradual types, and what PyTorch 2.13 answers: `tests/oracle/gen_experimental.py` has the same programs.
 */
import { beforeAll, expect, test } from "vitest";
import {
  Dyn,
  type GraphModule,
  GraphTypeChecker,
  inferSymbolicTypes,
  init,
  Module,
  nn,
  type Node,
  registerAlgebraicExpressionsInferenceRule,
  registerInferenceRule,
  registerRefinementRule,
  registerTransformationRule,
  symbolicTrace,
  type Tensor,
  type TensorDim,
  TensorType,
  torch,
  transformAllConstraints,
  wrap,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { thrown } from "../thrown.ts";

const sortedRows = wrap((x: Tensor) => torch.sort(x, 1)[0] as Tensor, "rules_test.sorted_rows");
const doubled = wrap((x: Tensor) => torch.cat([x, x], 0), "rules_test.doubled");

const typeOf = (node: unknown): TensorType => TensorType.parse((node as Node).type) as TensorType;
const dimOf = (node: unknown, at: number): TensorDim => typeOf(node).dims[at] as TensorDim;

beforeAll(async () => {
  await init();
  registerInferenceRule(sortedRows, (node) => typeOf(node.args[0]));
  registerRefinementRule(sortedRows, (node) => [0, 1].map((at) => [dimOf(node.args[0], at), dimOf(node, at)]));
  registerInferenceRule(doubled, (node) => new TensorType([Dyn, dimOf(node.args[0], 1)]));
  registerAlgebraicExpressionsInferenceRule(
    doubled,
    (node) => new TensorType([`2*${String(dimOf(node.args[0], 0))}`, dimOf(node, 1)]),
  );
});

const recorded = experimental("rules_of_types");

/** Unknown dimensions numbered in the order in which they are read. */
function numbered(lines: readonly string[]): string[] {
  return lines.map((line) => {
    const names = new Map<string, string>();
    return line.replaceAll(/~\d+/g, (it) => {
      if (!names.has(it)) names.set(it, `~${names.size}`);
      return names.get(it) as string;
    });
  });
}

class Net extends Module {
  linear = new nn.Linear(3, 5);
  override forward(x: Tensor): Tensor {
    return this.linear.forward(sortedRows(x));
  }
}

function typed(gm: GraphModule, type: TensorType): GraphModule {
  for (const node of gm.graph.findNodes({ op: "placeholder" })) node.type = String(type);
  return gm;
}

const types = (gm: GraphModule): string[] => gm.graph.nodes.map((it) => String(it.type));

test("as PyTorch answers: rules_of_types", () => {
  const said: string[] = [];
  for (const fn of [new Net(), (x: Tensor) => doubled(sortedRows(x))]) {
    const gm = typed(symbolicTrace(fn), new TensorType([Dyn, 3]));
    new GraphTypeChecker(gm).typeCheck();
    said.push(`[${types(gm).join(", ")}]`);
    inferSymbolicTypes(gm);
    said.push(`[${types(gm).slice(0, -1).join(", ")}]`);
  }
  const twice = thrown(() => registerInferenceRule(doubled, () => Dyn));
  said.push(twice.reason === "a rule is registered already for rules_test.doubled" ? "True" : "False");
  expect(numbered(said)).toEqual(numbered(recorded));
});

test("a rule for a class of modules is asked with the module", () => {
  class Shift extends Module {
    by = 2;
    override forward(x: Tensor): Tensor {
      return x.add(this.by);
    }
  }
  registerInferenceRule(Shift, (node, module) => {
    expect((module as Shift).by).toBe(2);
    return typeOf(node.args[0]);
  });
  const inside = new nn.Sequential(new Shift(), new nn.Linear(3, 4));
  class Leaves extends Module {
    inner = inside;
    override forward(x: Tensor): Tensor {
      return this.inner.forward(x);
    }
  }
  const gm = typed(symbolicTrace(new Leaves()), new TensorType([2, 3]));
  // The trace looks into `Shift`, so that the rule is asked of the call that the graph is edited to have.
  const add = gm.graph.nodes.find((it) => it.name.startsWith("add")) as Node;
  gm.addSubmodule("shift", new Shift());
  const call = gm.graph.insertingBefore(add, () => gm.graph.callModule("shift", [add.args[0] as Node]));
  add.replaceAllUsesWith(call);
  gm.graph.eraseNode(add);
  new GraphTypeChecker(gm).typeCheck();
  expect(types(gm).slice(1, 3)).toEqual(["TensorType[(2, 3)]", "TensorType[(2, 4)]"]);
});

test("what a rule says has to fit, and nothing is annotated where it does not", () => {
  const narrow = wrap((x: Tensor) => x, "rules_test.narrow");
  registerInferenceRule(narrow, () => new TensorType([2, 7]));
  class M extends Module {
    linear = new nn.Linear(3, 5);
    override forward(x: Tensor): Tensor {
      return this.linear.forward(narrow(x));
    }
  }
  const gm = typed(symbolicTrace(new M()), new TensorType([2, 3]));
  expect(thrown(() => new GraphTypeChecker(gm).typeCheck()).kind).toBe("TypeInconsistent");
  expect(types(gm)).toEqual(["TensorType[(2, 3)]", "undefined", "undefined", "undefined"]);
  registerRefinementRule(narrow, () => [[2, 3]]);
  expect(thrown(() => inferSymbolicTypes(gm)).reason).toContain("2 = 3");
});

test("constraints know the types that nodes with rules are annotated with", () => {
  const gm = typed(symbolicTrace(new Net()), new TensorType([Dyn, 3]));
  const sorted = gm.graph.nodes.find((it) => it.target === "rules_test.sorted_rows") as Node;
  sorted.type = String(new TensorType([2, 3]));
  expect(transformAllConstraints(gm).answer.verdict).toBe("sat");
  sorted.type = String(new TensorType([2, 4]));
  expect(transformAllConstraints(gm).answer.verdict).toBe("unsat");
});

const refused = (register: () => void): string => thrown(register).reason;

const dyn = () => Dyn;

test("nothing stands for a rule that there is", () => {
  expect(refused(() => registerInferenceRule(torch.add, dyn))).toBe("a rule is registered already for torch.add");
  expect(refused(() => registerInferenceRule(nn.Linear, dyn))).toBe("a rule is registered already for Linear");
  expect(refused(() => registerRefinementRule(torch.flatten, () => []))).toContain("registered already");
  expect(refused(() => registerAlgebraicExpressionsInferenceRule(nn.Conv2d, dyn))).toContain("registered already");
});

test("a function is written in terms of those that have constraints", () => {
  const flattened = wrap((x: Tensor, from: number) => torch.flatten(x, from), "rules_test.flattened");
  const traced = (): GraphModule => symbolicTrace((x: Tensor, y: Tensor) => torch.add(flattened(x, 1), y));
  const [x, y] = [new TensorType([2, 3, 4]), new TensorType([2, 12])];
  const asked = (gm: GraphModule, second: TensorType): string => {
    for (const [at, node] of gm.graph.findNodes({ op: "placeholder" }).entries())
      node.type = String(at === 0 ? x : second);
    return transformAllConstraints(gm).answer.verdict;
  };
  registerTransformationRule(flattened, (it: Tensor, from: number) => torch.flatten(it, from));
  const gm = traced();
  expect([asked(gm, y), asked(gm, new TensorType([2, 7]))]).toEqual(["sat", "unsat"]);
  const { variables, answer } = transformAllConstraints(typedAs(gm, x, y));
  const flat = gm.graph.nodes.map((it) => it.target).indexOf("rules_test.flattened");
  expect(answer.types[variables[flat] as string]).toBe(String(y));
  expect(variables).toHaveLength([...gm.graph.nodes].length);
  expect(() => registerTransformationRule(flattened, (it: Tensor) => it)).toThrow("a rule is registered already");
});

test("such a function takes lists of tensors", () => {
  const sum = wrap((xs: readonly Tensor[]) => xs[0] as Tensor, "rules_test.sum_of_list");
  registerTransformationRule(sum, ([x, y]: [Tensor, Tensor]) => torch.add(x, y));
  const verdictOf = (second: TensorType): string => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => sum([x, y]));
    return transformAllConstraints(typedAs(gm, new TensorType([2, 3]), second)).answer.verdict;
  };
  expect([verdictOf(new TensorType([2, 3])), verdictOf(new TensorType([2, 4]))]).toEqual(["sat", "unsat"]);
});

function typedAs(gm: GraphModule, ...ofInputs: TensorType[]): GraphModule {
  for (const [at, node] of gm.graph.findNodes({ op: "placeholder" }).entries()) node.type = String(ofInputs[at]);
  return gm;
}
