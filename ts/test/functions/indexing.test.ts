import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import {
  Ellipsis,
  FxError,
  init,
  slice,
  Slice,
  type Tensor,
  tensor,
  type TensorInput,
  tuple,
} from "../../src/index.ts";

beforeAll(() => init());

type PartJson =
  | "..."
  | null
  | boolean
  | number
  | { str: string }
  | { slice: [number | null, number | null, number | null] }
  | { tensor: TensorInput; dtype: DType }
  | { list: unknown[] }
  | { tuple: PartJson[] };

interface Case {
  readonly shape: number[];
  readonly index: PartJson;
  readonly value?: PartJson;
  readonly size?: number[];
  readonly stride?: number[];
  readonly values?: unknown;
  readonly isView?: boolean;
  readonly after?: unknown;
  readonly error?: string;
}

const path = new URL("../../../tests/fixtures/indexing/cases.jsonl", import.meta.url);
const lines = readFileSync(path, "utf8").trimEnd().split("\n");

function part(json: PartJson): unknown {
  if (json === "...") return Ellipsis;
  if (typeof json !== "object" || json === null) return json;
  if ("str" in json) return json.str;
  if ("slice" in json) return new Slice(...json.slice);
  if ("tensor" in json) return tensor(json.tensor, { dtype: json.dtype });
  if ("list" in json) return json.list;
  return tuple(...json.tuple.map(part));
}

function base(shape: readonly number[]): Tensor {
  const numel = shape.reduce((product, size) => product * size, 1);
  return tensor(
    BigInt64Array.from({ length: numel }, (_, at) => BigInt(at)),
    { shape },
  );
}

/** What a body gives, or the kind of its refusal. */
function outcome<T>(body: () => T): T | FxError {
  try {
    return body();
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
}

describe("x[index] as in PyTorch", () => {
  test.each(lines.filter((line) => !line.includes('"value"')))("%s", (line) => {
    const { shape, index, size, stride, values, isView, error } = JSON.parse(line) as Case;
    const x = base(shape);
    const y = outcome(() => x.get(part(index) as number));
    if (error !== undefined) {
      expect(y).toBeInstanceOf(FxError);
      return;
    }
    if (y instanceof FxError) throw y;
    expect(y.toArray()).toEqual(values);
    expect(y.shape).toEqual(size);
    // A dimension of one element may have any stride.
    y.stride().forEach((it, dim) => y.size(dim) === 1 || expect(it).toBe(stride?.[dim]));
    callOperator("aten.add_", [y, 1000]);
    if (y.numel() > 0) expect(x.toString() !== base(shape).toString()).toBe(isView);
  });
});

describe("x[index] = value as in PyTorch", () => {
  test.each(lines.filter((line) => line.includes('"value"')))("%s", (line) => {
    const { shape, index, value, after, error } = JSON.parse(line) as Case;
    const x = base(shape);
    const refusal = outcome(() => x.set(part(index), part(value as PartJson) as Tensor));
    if (error !== undefined) {
      expect(refusal).toBeInstanceOf(FxError);
      expect(x.toString()).toBe(base(shape).toString());
    } else {
      expect(refusal).toBeUndefined();
      expect(x.toArray()).toEqual(after);
    }
  });
});

describe("JavaScript's own ways to index", () => {
  test("positions are properties, negative ones too", () => {
    const x = base([2, 3]);
    expect((x[0] as Tensor).toArray()).toEqual([0, 1, 2]);
    expect((x[-1] as Tensor)[-1]?.item()).toBe(5);
    x[1] = tensor([7, 8, 9]);
    expect(x.toArray()).toEqual([
      [0, 1, 2],
      [7, 8, 9],
    ]);
    expect(() => x[2]).toThrow(expect.objectContaining({ kind: "IndexOutOfRange" }));
  });

  test("other properties are what they always were", () => {
    const x = base([2]);
    const loose = x as unknown as Record<string, unknown>;
    expect([loose["01"], loose["1.5"], loose["-0"], loose["then"], loose["toJSON"]]).toEqual(Array(5).fill(undefined));
    loose["note"] = "mine";
    expect(loose["note"]).toBe("mine");
    expect(x instanceof Object && typeof x.hasOwnProperty).toBe("function");
  });

  test("iteration and destructuring go over the first dimension", () => {
    const [first, second] = base([2, 2]);
    expect([first?.toArray(), second?.toArray()]).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect([...base([3])].map((it) => it.item())).toEqual([0, 1, 2]);
    expect(() => [...tensor(1)]).toThrow("iteration over a 0-d tensor");
  });

  test("several parts are given one after another", () => {
    expect(base([2, 3]).get(Ellipsis, slice(1, null)).toArray()).toEqual([
      [1, 2],
      [4, 5],
    ]);
    expect(base([2, 3]).get(1, [0, 2]).toArray()).toEqual([3, 5]);
  });

  test("what is no index is refused by name", () => {
    for (const index of [undefined, {}, 1.5, ["a"], [1.5], "0", () => 1]) {
      expect(() => base([2]).get(index as number)).toThrow(expect.objectContaining({ kind: "InputType" }));
    }
  });
});
