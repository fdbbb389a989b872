import { describe, expect, it } from "vitest";
import {
  FxError,
  Graph,
  GraphModule,
  PassBase,
  PassManager,
  type PassResult,
  passResultWrapper,
  thisBeforeThatPassConstraint,
} from "../../src/index.ts";

function module(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.output(graph.callFunction("operator.add", [x, x]));
  return GraphModule.ofGraph(graph);
}

/** A pass that replaces a target, as long as there is one. */
class Replace extends PassBase {
  readonly from: string;
  readonly to: string;

  constructor(from: string, to: string) {
    super();
    this.from = from;
    this.to = to;
  }

  override call(graphModule: GraphModule): PassResult {
    const found = graphModule.graph.findNodes({ op: "call_function", target: this.from });
    for (const node of found) node.target = this.to;
    return { graphModule, modified: found.length > 0 };
  }
}

function cleanUp(gm: GraphModule): void {
  gm.graph.eliminateDeadCode();
}

describe("a pass manager", () => {
  it("runs passes until nothing changes", () => {
    const manager = new PassManager({
      passes: [new Replace("operator.mul", "operator.sub"), new Replace("operator.add", "operator.mul")],
      steps: 5,
    });
    const gm = module();
    expect(manager.run(gm).modified).toBe(true);
    expect([...gm.graph.nodes].map(({ target }) => target)).toEqual(["x", "operator.sub", "output"]);
    expect(manager.run(gm).modified).toBe(false);
  });

  it("puts passes into the order that constraints ask for", () => {
    const [a, b, c] = [new Replace("a", "b"), passResultWrapper(cleanUp), new Replace("c", "d")];
    const manager = new PassManager({ passes: [a, b, c] });
    manager.addConstraint(thisBeforeThatPassConstraint(c, a));
    expect(() => manager.validateConstraints()).toThrow(/Replace stands at index 0 and Replace at index 2/);
    manager.solveConstraints();
    expect(manager.passes).toEqual([b, c, a]);
    manager.addConstraint(thisBeforeThatPassConstraint(a, c));
    expect(() => manager.run(module())).toThrow(
      "Circular dependency detected within the following passes: [Replace, Replace]",
    );
  });

  it("runs a pass that stands twice in the list twice", () => {
    const [first, second] = [new Replace("a", "b"), new Replace("c", "d")];
    const constraints = [thisBeforeThatPassConstraint(first, second)];
    const manager = new PassManager({ passes: [second, first, second], constraints });
    manager.solveConstraints();
    expect(manager.passes).toEqual([first, second, second]);
  });

  it("refuses what it would leave out", () => {
    expect(() => new PassManager([cleanUp] as never)).toThrow("PassManager takes its options as an object");
    expect(() => new PassManager({ pass: [] } as never)).toThrow("PassManager has no option `pass`");
    expect(() => new PassManager({ steps: 0 })).toThrow("passes run once or more often, and not 0 times");
    expect(() => new PassManager({ passes: [undefined as never] })).toThrow("undefined is no pass");
    expect(() => new PassManager().addPass("cleanUp" as never)).toThrow("cleanUp is no pass");
  });

  it("names the passes before one that fails, and keeps what went wrong", () => {
    const broken = new TypeError("broken");
    const fails = (): never => {
      throw broken;
    };
    const manager = new PassManager({ passes: [passResultWrapper(cleanUp), fails] });
    let problem: unknown;
    try {
      manager.run(module());
    } catch (error) {
      problem = error;
    }
    expect(problem).toBeInstanceOf(FxError);
    expect(problem).toMatchObject({
      kind: "PassFailed",
      reason: "An error occurred when running the 'fails' pass after the following passes: [cleanUp]",
      cause: broken,
    });
  });

  it("refuses results that are none, and says how to make one", () => {
    const manager = new PassManager({ passes: [cleanUp as never] });
    expect(() => manager.run(module())).toThrow(/should be type PassResult/);
  });

  it("checks between passes", () => {
    const manager = new PassManager({
      passes: [passResultWrapper(cleanUp), new Replace("operator.add", "operator.mul")],
      runChecksAfterEachPass: true,
    });
    const seen: string[] = [];
    manager.addChecks((gm) => {
      seen.push([...gm.graph.nodes][1]?.target ?? "");
    });
    manager.run(module());
    expect(seen).toEqual(["operator.add", "operator.add", "operator.mul"]);
    expect(() => manager.addChecks((() => {}) as never)).toThrow(/only take in one variable/);
  });
});

describe("a pass", () => {
  it("runs between its checks", () => {
    const steps: string[] = [];
    class Checked extends PassBase {
      override requires(): void {
        steps.push("requires");
      }
      override call(graphModule: GraphModule): PassResult {
        steps.push("call");
        return { graphModule, modified: false };
      }
      override ensures(): void {
        steps.push("ensures");
      }
    }
    new Checked().run(module());
    expect(steps).toEqual(["requires", "call", "ensures"]);
  });
});
