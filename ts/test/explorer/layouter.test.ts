/** What becomes of layouts that are asked for: each promise is settled, whatever the worker does. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { layOut, type LayoutRequest } from "../../src/explorer/layout.ts";
import { Layouter } from "../../src/explorer/layouter.ts";

const REQUEST: LayoutRequest = {
  parents: Int32Array.of(-1),
  widths: Float32Array.of(10),
  heights: Float32Array.of(10),
  edges: new Int32Array(),
};
/** What no layout can be made of. */
const WRONG = { ...REQUEST, parents: undefined } as unknown as LayoutRequest;

/** A worker that answers when it is told to. */
class FakeWorker extends EventTarget {
  static readonly all: FakeWorker[] = [];
  isTerminated = false;
  request: LayoutRequest | undefined;

  constructor() {
    super();
    FakeWorker.all.push(this);
  }

  postMessage(request: LayoutRequest): void {
    this.request = request;
  }

  terminate(): void {
    this.isTerminated = true;
  }

  answer(): void {
    this.dispatchEvent(new MessageEvent("message", { data: layOut(this.request as LayoutRequest) }));
  }
}

beforeEach(() => {
  FakeWorker.all.length = 0;
  vi.stubGlobal("Worker", FakeWorker);
});

afterEach(() => vi.unstubAllGlobals());

it("has a worker lay out a picture", async () => {
  using layouter = new Layouter();
  const laidOut = layouter.layOut(REQUEST);
  FakeWorker.all[0]?.answer();
  expect((await laidOut)?.boxes.length).toBe(4);
  expect(FakeWorker.all.length).toBe(1);
});

it("starts the worker anew for a newer picture", async () => {
  using layouter = new Layouter();
  const older = layouter.layOut(REQUEST);
  const newer = layouter.layOut(REQUEST);
  expect(await older).toBeUndefined();
  expect(FakeWorker.all.map((worker) => worker.isTerminated)).toEqual([true, false]);
  FakeWorker.all[1]?.answer();
  expect(await newer).toBeDefined();
});

it("gives nothing once it is disposed of", async () => {
  const layouter = new Layouter();
  const waiting = layouter.layOut(REQUEST);
  layouter[Symbol.dispose]();
  expect(await waiting).toBeUndefined();
  expect(await layouter.layOut(REQUEST)).toBeUndefined();
  expect(layouter.hasWorker).toBe(false);
});

it.each(["error", "messageerror"])("goes on without the worker after its %s", async (type) => {
  using layouter = new Layouter();
  const waiting = layouter.layOut(REQUEST);
  FakeWorker.all[0]?.dispatchEvent(new Event(type));
  expect(await waiting).toBeDefined();
  expect(await layouter.layOut(REQUEST)).toBeDefined();
  expect(FakeWorker.all.length).toBe(1);
});

it("refuses what cannot be laid out", async () => {
  using layouter = new Layouter();
  const waiting = layouter.layOut(WRONG);
  const refused = expect(waiting).rejects.toThrow();
  FakeWorker.all[0]?.dispatchEvent(new Event("error"));
  await refused;
});
