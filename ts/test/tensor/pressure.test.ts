import { beforeAll, expect, test, vi } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { device } from "../../src/base/values.ts";
import { init, type Tensor, tensor } from "../../src/index.ts";
import type { SharedStorage, TensorStorage } from "../../src/tensor/storage.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

const MEGA = 2 ** 20;

/** Makes tensors of 4 MB that nobody disposes of, and gives back the bytes of all of them. */
function leave(count: number): number {
  let last: Tensor | undefined;
  for (let made = 0; made < count; made++) {
    last = callOperator("aten.full", [[MEGA], made]) as Tensor;
  }
  expect(last?.select(0, 5).item()).toBe(count - 1);
  return count * 4 * MEGA;
}

test("a loop that neither disposes nor awaits has all the memory that it no longer uses", () => {
  expect(leave(1200)).toBeGreaterThan(2 ** 32);
}, 120_000);

test("what is still used stays as it is", () => {
  const kept = Array.from({ length: 20 }, (_, at) => callOperator("aten.full", [[MEGA], at]) as Tensor);
  const views = kept.map((it) => it.narrow(0, 7, 3));
  leave(200);
  expect(kept.map((it) => it.select(0, 9).item())).toEqual(kept.map((_, at) => at));
  expect(views.map((it) => it.toArray())).toEqual(views.map((_, at) => [at, at, at]));
}, 120_000);

test("a host without a collector to ask has it run by buffers that count", async () => {
  // As in a browser: no modules of Node's to ask with, and tasks between the tensors.
  const getBuiltinModule = process.getBuiltinModule.bind(process);
  vi.spyOn(process, "getBuiltinModule").mockImplementation(((name: string) =>
    name === "node:vm" ? undefined : getBuiltinModule(name)) as typeof process.getBuiltinModule);
  vi.resetModules();
  const { init: initAnew, torch } = await import("../../src/index.ts");
  await initAnew();
  for (let made = 0; made < 1200; made++) {
    torch.full([MEGA], made);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(torch.full([3], 1.5).toArray()).toEqual([1.5, 1.5, 1.5]);
  vi.restoreAllMocks();
}, 120_000);

test("the memory of a GPU counts apart: it brings no collection of the engine's nearer, and is collected", async () => {
  vi.resetModules();
  const { hold, relieve } = await import("../../src/tensor/pressure.ts");
  const freed: TensorStorage[] = [];
  const look = async (): Promise<number> => {
    // A weak reference holds what it refers to until the task ends.
    await new Promise((resolve) => setTimeout(resolve, 1));
    relieve((it) => freed.push(it));
    return freed.length;
  };
  const taken = (megabytes: number, onGpu: boolean): SharedStorage => {
    const owner = {} as SharedStorage;
    const place = onGpu ? { device: device("gpu") } : {};
    hold(owner, { byteLength: megabytes * MEGA, needsFree: true, ...place } as TensorStorage);
    return owner;
  };
  const model = taken(4096, true);
  for (let made = 0; made < 2; made++) taken(100, false);
  expect(await look()).toBe(0);
  for (let made = 0; made < 2; made++) taken(100, false);
  // The last one may still lie on the stack.
  expect(await look()).toBeGreaterThan(2);
  const tensors: WeakRef<object>[] = [];
  for (let made = 0; made < 200; made++) {
    tensors.push(new WeakRef(taken(100, true)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  // Nobody asked for it.
  expect(tensors.filter((it) => it.deref() === undefined).length).toBeGreaterThan(100);
  expect(model).toEqual({});
});

test("memory that is not there is told with what gives it back", () => {
  const error = thrown(() => callOperator("aten.full", [[2 ** 29, 4], 1]));
  expect(error).toMatchObject({ code: "FX0901" });
  expect(String((error as { help?: string }).help)).toMatch(/using.*tidy/);
  expect(tensor([1]).add(1).item()).toBe(2);
});
