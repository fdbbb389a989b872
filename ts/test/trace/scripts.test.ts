/** The text of functions that are running: of files, of what a host compiled, and none where nobody has it. */
import { runInThisContext } from "node:vm";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { init, nn, symbolicTrace, type Tensor, torch, type Traceable } from "../../src/index.ts";
import { Script } from "../../src/trace/scripts.ts";
import { thrown } from "../thrown.ts";

beforeAll(async () => void (await init()));

const SOURCE = `(torch) => {
  const make = () => (v) => (v.shape[0] === 4 ? v.relu() : v.neg());
  const plain = () => (v) => torch.relu(v);
  return { decides: (x) => make()(x), plain: (x) => plain()(x) };
}`;

interface Made {
  readonly decides: Traceable;
  readonly plain: Traceable;
}

function compiled(filename: string, offset = 0): Made {
  return (runInThisContext(SOURCE, { filename, lineOffset: offset, columnOffset: offset }) as (given: unknown) => Made)(
    torch,
  );
}

describe("code that is in no file", () => {
  test("is read as the host compiled it, and its lines are the host's", () => {
    const error = thrown(() => symbolicTrace(compiled("in-no-file.js").decides));
    expect(error.message).toContain("`v.shape[0] === 4` compares a traced value by identity");
    expect(error.message).toContain("in-no-file.js:2:30");
    expect(thrown(() => symbolicTrace(compiled("moved.js", 10).decides)).message).toContain("moved.js:12:30");
  });

  test("is recorded without a word where it decides nothing", () => {
    const warn = vi.spyOn(console, "warn");
    symbolicTrace(compiled("plain.js").plain, { checkSources: "strict" });
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  test("is told of where the host has no inspector, or forbids it", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const { getBuiltinModule } = process;
    const forbidden = class {
      connect(): void {
        throw new Error("not permitted");
      }
    };
    for (const found of [undefined, { Session: forbidden }]) {
      const host = vi
        .spyOn(process, "getBuiltinModule")
        .mockImplementation((name: string) =>
          name === "node:inspector" ? (found as never) : (getBuiltinModule.call(process, name) as never),
        );
      symbolicTrace(compiled(found === undefined ? "without.js" : "forbidden.js").decides);
      host.mockRestore();
      expect(warn.mock.calls.flat().join()).toContain("`make()` is given a traced value and its source cannot be seen");
      warn.mockClear();
    }
    warn.mockRestore();
  });
});

test("a bundle of half a megabyte is not parsed", () => {
  const line = "function f(a) { return a; }\n";
  expect(new Script("short.js", line.repeat(100)).functionAt(1, 18)?.node.id?.name).toBe("f");
  expect(new Script("long.js", line.repeat(500_000 / 25)).program).toBeUndefined();
});

test("modules of classes are recorded without a word where a test runner has taken their types away", () => {
  const warn = vi.spyOn(console, "warn");
  class Held {
    readonly scale: number;
    constructor(scale: number) {
      this.scale = scale;
    }
    apply(v: Tensor): Tensor {
      return torch.relu(v).mul(this.scale) as Tensor;
    }
  }
  const held = new Held(2);
  const twice = (v: Tensor): Tensor => held.apply(v).add(1) as Tensor;
  class Net extends nn.Module {
    override forward(x: Tensor): Tensor {
      return twice(held.apply(x));
    }
  }
  symbolicTrace(new Net());
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});
