/** Links: what they keep, how long they are, and that a forged one does no harm. */
import { expect, it } from "vitest";
import { Graph, GraphModule } from "tracefx";
import { GraphModel } from "../../src/explorer/model.ts";
import { linkOf, sideOfLink, stateOfLink, type ViewState } from "../../src/explorer/permalink.ts";

/** A model of so many nodes. */
function modelOf(n: number): GraphModel {
  const graph = new Graph();
  for (let at = 0; at < n; at++) graph.placeholder(`x${at}`);
  return new GraphModel(new GraphModule({}, graph));
}

const STATE: ViewState = {
  open: new Set([0, 1, 2, 5]),
  selected: 5,
  weights: true,
  query: "a b",
  side: "first",
  camera: [1, 2, 0.5],
};

it("a link keeps what is open, selected and seen, and of which program", () => {
  const link = linkOf(STATE);
  expect(stateOfLink(`#${link}`, modelOf(10))).toEqual(STATE);
  expect(sideOfLink(link)).toBe("first");
  expect(sideOfLink("open=&side=third")).toBeUndefined();
});

it("a link of very many open items leaves out the innermost", () => {
  const open = new Set(Array.from({ length: 5000 }, (_, at) => 2 * at));
  const link = linkOf({ ...STATE, open });
  expect(link.length).toBeLessThan(4200);
  const read = stateOfLink(link, modelOf(10_000))?.open ?? new Set();
  expect(read.size).toBeGreaterThan(500);
  expect([...read].every((item) => open.has(item))).toBe(true);
});

it("a forged link opens what there is, each item once", () => {
  expect(stateOfLink("open=-5.x.3-zzzzzz.0-zzzzzz.zzz", modelOf(6))?.open).toEqual(new Set([3, 4, 5]));
});
