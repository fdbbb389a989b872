/** What passes take and give, and what the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import {
  CSEPass,
  constantFold,
  type GraphModule,
  type Match,
  type Node,
  type Pass,
  PassBase,
  PassManager,
  type PassResult,
  replacePattern,
  splitModule,
  type Tensor,
} from "tracefx";

declare const gm: GraphModule;

export function results(): void {
  expectTypeOf(new CSEPass().call(gm)).toEqualTypeOf<PassResult>();
  expectTypeOf(new CSEPass().run(gm)).toEqualTypeOf<PassResult | undefined>();
  expectTypeOf(
    new PassManager({ passes: [new CSEPass(), () => undefined], steps: 2 }).run(gm),
  ).toEqualTypeOf<PassResult>();
  expectTypeOf(constantFold(gm, { maxBytes: 10 })).toEqualTypeOf<boolean>();
  expectTypeOf(
    replacePattern(
      gm,
      (x: Tensor) => x.relu(),
      (x: Tensor) => x.neg(),
    ),
  ).toEqualTypeOf<Match[]>();
  expectTypeOf(splitModule(gm, () => 0, { qualnameMap: new Map() })).toEqualTypeOf<GraphModule>();
  expectTypeOf<CSEPass>().toExtend<Pass>();
  expectTypeOf<(graphModule: GraphModule) => PassResult>().toExtend<Pass>();
}

/** A pass of one's own says whether it changed the graph. */
export class Named extends PassBase {
  override call(graphModule: GraphModule): PassResult {
    return { graphModule, modified: false };
  }
}

export class Silent extends PassBase {
  // @ts-expect-error what a pass did is told by a result, and not by true
  override call(_graphModule: GraphModule): boolean {
    return true;
  }
}

// @ts-expect-error a pass has a call
export class Empty extends PassBase {}

export function refused(): void {
  // @ts-expect-error there is no such option
  new CSEPass({ banned: [] });
  // @ts-expect-error a pass is made before it is given
  new PassManager({ passes: [CSEPass] });
  // @ts-expect-error there is no such option
  constantFold(gm, { maxElements: 10 });
  // @ts-expect-error a pass runs on a graph module
  new CSEPass().call(gm.graph);
  // @ts-expect-error a partition is a number
  splitModule(gm, (node: Node) => node.name);
  // @ts-expect-error the replacement is missing
  replacePattern(gm, (x: Tensor) => x.relu());
}
