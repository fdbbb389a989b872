import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type CheckpointDict,
  dtype,
  FxError,
  init,
  loadCheckpoint,
  nn,
  Parameter,
  readCheckpoint,
  type Tensor,
  torch,
  tuple,
} from "../../src/index.ts";

const FIXTURES = new URL("../../../tests/fixtures/checkpoints/", import.meta.url);
const at = (name: string): URL => new URL(name, FIXTURES);

beforeAll(() => init());

async function refusal(work: Promise<unknown>): Promise<FxError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(FxError);
  return error as FxError;
}

describe("a file of torch.save", () => {
  test("gives its weights to a model", async () => {
    const model = new nn.Sequential(new nn.Linear(2, 3), new nn.BatchNorm1d(3, { affine: false }));
    expect(model.loadStateDict(await loadCheckpoint(at("state_dict.pt")))).toEqual({
      missingKeys: [],
      unexpectedKeys: [],
    });
    torch.manualSeed(0);
    const drawn = new nn.Linear(2, 3);
    expect((model[0] as nn.Linear).weight.data).toEqual(drawn.weight.data);
  });

  test("gives what else it holds", async () => {
    const file = await loadCheckpoint(at("training.pt"));
    const plain = ["epoch", "loss", "best", "done", "name", "sizes", "steps", "dtype", 3] as const;
    expect(plain.map((name) => file.get(name))).toEqual([
      7,
      0.25,
      null,
      false,
      "net",
      tuple(2, 3),
      [1, tuple(2, 3.5)],
      dtype("float16"),
      "three",
    ]);
    const [base, column] = [file.get("base") as Tensor, file.get("column") as Tensor];
    expect(column.toArray()).toEqual([1, 4]);
    base.fill_(9);
    expect(column.toArray()).toEqual([9, 9]);
    expect((file.get("half") as Tensor).toArray()).toEqual([1.5, -2]);
    const parameter = file.get("parameter") as Parameter;
    expect(parameter).toBeInstanceOf(Parameter);
    expect(parameter.requiresGrad).toBe(false);
    expect([...(file.get("state_dict") as CheckpointDict).keys()][0]).toBe("0.weight");
  });

  test("is read as bytes too", async () => {
    expect(readCheckpoint(await readFile(at("state_dict.pt")))).toBeInstanceOf(Map);
  });

  test("is refused where it holds more than data, is old, or holds itself", async () => {
    const module = await refusal(loadCheckpoint(at("module.pt")));
    expect([module.kind, module.reason]).toEqual([
      "PickleForbidden",
      "the file holds an object of torch.nn.modules.linear.Linear, which is not made",
    ]);
    expect((await refusal(loadCheckpoint(at("legacy.pt")))).reason).toContain("before 1.6");
    expect((await refusal(loadCheckpoint(at("cycle.pt")))).kind).toBe("LimitExceeded");
    expect((await refusal(loadCheckpoint(new Uint8Array(4)))).kind).toBe("ArchiveWrongKind");
    const limited = await refusal(loadCheckpoint(at("state_dict.pt"), { limits: { pickle_values: 3 } }));
    expect(limited.kind).toBe("LimitExceeded");
    expect((await refusal(loadCheckpoint(at("state_dict.pt"), { limit: {} } as never))).kind).toBe("InvalidOption");
    expect((await refusal(loadCheckpoint(3 as never))).kind).toBe("InvalidOption");
  });
});
