import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { defineFunction } from "../../src/functions/table.ts";
import { type FxError, FxError as Refusal } from "../../src/base/errors.ts";
import { exportProgram, init } from "../../src/index.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { symbolicTrace, type Traceable, Tracer } from "../../src/trace/tracer.ts";
import { thrown } from "../thrown.ts";

const relu = defineFunction("check.relu", (x: Tensor): Tensor => x);

const any = defineFunction("check.any", (_x: Tensor): boolean => true);
const dim = defineFunction("check.dim", (_x: Tensor): number => 3);

class Leaf extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
markBuiltin({ Leaf });

class Loud extends Tracer {
  readonly warnings: FxError[] = [];
  protected override warn(warning: FxError): void {
    this.warnings.push(warning);
  }
}

function refusal(root: Traceable, tracer = new Tracer()): FxError {
  try {
    symbolicTrace(root, { tracer });
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

function graph(root: Traceable, tracer = new Tracer()): string {
  return `${symbolicTrace(root, { tracer }).graph}`.split("\n").slice(1).join("\n").trim();
}

class Block extends Module {
  leaf = new Leaf();
  weight = new Parameter(tensor([1, 2], { dtype: "float32" }));
  scale: Parameter | null = null;

  override forward(x: Tensor, mask: Tensor | null = null): unknown {
    const y = this.leaf.forward(x);
    if (this.scale !== null) return relu(this.scale);
    if (this.weight) return mask === null ? y : relu(mask);
    return x;
  }
}

class Calls extends Module {
  block = new Block();
  mode = "with";

  override forward(x: Tensor): unknown {
    return this.mode === "with" ? this.block.forward(x, relu(x)) : this.block.forward(x);
  }
}

class Helped extends Module {
  leaf = new Leaf();
  width = 3;

  helper(x: Tensor, n: number): unknown {
    if (n === 3) return x;
    return this.leaf.forward(x);
  }

  isWide(_x: Tensor): boolean {
    return this.width > 2;
  }

  override forward(x: Tensor): unknown {
    return this.isWide(x) ? this.helper(x, this.width) : x;
  }
}

class HelpedByTraced extends Helped {
  override forward(x: Tensor): unknown {
    return this.helper(x, dim(x));
  }
}

class Base extends Module {
  override forward(x: Tensor): unknown {
    return any(x) ? x : 1;
  }
}

class Derived extends Base {
  override forward(x: Tensor): unknown {
    return super.forward(x);
  }
}

class OnParameter extends Module {
  weight = new Parameter(tensor([1, 2], { dtype: "float32" }));

  override forward(x: Tensor): unknown {
    if (this.weight.shape[0] === 2) return x;
    return relu(x);
  }
}

class Deep extends Module {
  inner = new Base();

  override forward(x: Tensor): unknown {
    return this.inner.forward(x);
  }
}

class Keeps extends Module {
  last: Tensor | null = null;

  override forward(x: Tensor): Tensor {
    this.last = x;
    return x;
  }
}

describe("a trace refuses", () => {
  test("what it could not see, with the place and what to write", () => {
    const error = refusal((x: Tensor) => {
      if (x) return x;
      return 1;
    });
    expect(error.kind).toBe("TraceControlFlow");
    expect(error.reason).toMatchInlineSnapshot(
      `"\`if (x)\` asks whether a traced value is true; JavaScript always says yes, and the other branch would be lost (line 2, column 8 of the function)"`,
    );
    expect(error.help).toContain("torch.where");
  });

  test("and names the line in the file, through source maps", () => {
    const error = refusal((x: Tensor) => {
      // A comment, which compiling takes away.
      const y = x.relu();
      return y === x;
    });
    const [, line] = /sourceCheck\.test\.ts:(\d+):\d+\)/.exec(error.reason) ?? [];
    const source = readFileSync(new URL(import.meta.url), "utf8").split("\n");
    expect(source[Number(line) - 1]?.trim()).toBe("return y === x;");
  });

  test("without running a loop that would not end", () => {
    const error = refusal((x: Tensor) => {
      let y = x;
      while (y) y = x;
      return y;
    });
    expect(error.reason).toContain("`while (y)`");
  });

  test("everything that it finds at once", () => {
    const error = refusal((x: Tensor, y: Tensor) => (x === y ? 1 : any(x) ? 2 : 3));
    expect([error.reason, ...error.notes]).toHaveLength(2);
  });

  test.each<[string, Traceable, string]>([
    ["what a method of the module does with a traced value", new HelpedByTraced(), "helper of HelpedByTraced"],
    ["what the base class does", new Derived(), "forward of Derived"],
    ["what a sub-module does", new Deep(), "forward of Base"],
    ["what is asked of a parameter of the module", new OnParameter(), "this.weight.shape[0] === 2"],
    ["what is kept in the module", new Keeps(), "this.last"],
  ])("%s", (_, root, text) => {
    expect(refusal(root).message).toContain(text);
  });
});

/** Decides by what it is given. */
const decide = (y: Tensor): Tensor => (y ? y.relu() : y);

class Chooser {
  limit = 1;
  /** Decides by what it is given, in another method of its own. */
  choose(y: Tensor): Tensor {
    return this.decide(y);
  }
  decide(y: Tensor): Tensor {
    return y ? y.relu() : y;
  }
  /** Decides by something plain. */
  known(y: Tensor): Tensor {
    return this.limit > 0 ? y.relu() : y;
  }
}

describe("a trace follows", () => {
  class Members extends Module {
    field = decide;
    list = [decide];
    config = { inner: { act: decide } };
    chooser = new Chooser();
    own(y: Tensor): Tensor {
      return y ? y.relu() : y;
    }
  }
  const ways: readonly [string, new () => Module][] = [
    [
      "a function in a field",
      class extends Members {
        override forward(x: Tensor) {
          return this.field(x);
        }
      },
    ],
    [
      "an item of an array",
      class extends Members {
        override forward(x: Tensor) {
          return this.list[0]?.(x);
        }
      },
    ],
    [
      "all items",
      class extends Members {
        override forward(x: Tensor) {
          return this.list.map((it) => it(x));
        }
      },
    ],
    [
      "a plain object",
      class extends Members {
        override forward(x: Tensor) {
          return this.config.inner.act(x);
        }
      },
    ],
    [
      "an object of a class",
      class extends Members {
        override forward(x: Tensor) {
          return this.chooser.choose(x);
        }
      },
    ],
    [
      "call",
      class extends Members {
        override forward(x: Tensor) {
          return this.own.call(this, x);
        }
      },
    ],
    [
      "bind",
      class extends Members {
        override forward(x: Tensor) {
          const f = this.own.bind(this);
          return f(x);
        }
      },
    ],
    [
      "a private method",
      class extends Module {
        #own(y: Tensor) {
          return y ? y.relu() : y;
        }
        override forward(x: Tensor) {
          return this.#own(x);
        }
      },
    ],
    [
      "a private field",
      class extends Module {
        #own = (y: Tensor) => (y ? y.relu() : y);
        override forward(x: Tensor) {
          return this.#own(x);
        }
      },
    ],
  ];
  test.each(ways)("%s", (_, kind) => {
    expect(refusal(new kind()).kind).toBe("TraceControlFlow");
  });

  test("what decides by something plain, or records itself, without a word", () => {
    class Plain extends Module {
      act = relu;
      names: string[] = [];
      chooser = new Chooser();
      #flag = true;
      #pick(y: Tensor): Tensor {
        return this.#flag ? y.relu() : y;
      }
      override forward(x: Tensor): Tensor {
        this.names.push("x");
        return this.act(this.chooser.known(this.#pick(x)));
      }
    }
    const tracer = new Loud();
    expect(symbolicTrace(new Plain(), { tracer }).graph.nodes.length).toBe(5);
    expect(tracer.warnings).toEqual([]);
  });
});

describe("a trace takes", () => {
  test("an argument that is given or not as it is called", () => {
    const calls = new Calls();
    expect(graph(calls)).toContain("check.relu](args = (%relu,)");
    calls.mode = "without";
    expect(graph(calls)).not.toContain("check.relu");
  });

  test("methods of the module that decide by plain values", () => {
    expect(graph(new Helped())).toContain("return x");
  });

  test("shapes of parameters that are constants", () => {
    expect(graph(new OnParameter(), new Tracer({ paramShapesConstant: true }))).toContain("return x");
  });

  test("anything when it is told not to check", () => {
    const tracer = new Tracer();
    tracer.checkSources = false;
    expect(graph(new Base(), tracer)).toContain("return x");
  });
});

let calls = 0;

/** A function of the user's with a name of torch. */
const add = (x: Tensor): unknown => relu(x);
const sub = (x: Tensor): unknown => (x.shape[0] === 2 ? relu(x) : x);
const unseen = (x: unknown): unknown => x;
const callsUnseen = (x: Tensor): unknown => unseen(x);

describe("a trace warns of", () => {
  test("functions that it cannot read, once", () => {
    const tracer = new Loud();
    graph(callsUnseen, tracer);
    graph(callsUnseen, tracer);
    expect(tracer.warnings.map(({ reason }) => reason)).toEqual([
      expect.stringContaining("`unseen` is given a traced value"),
    ]);
    graph((x: Tensor) => relu(x), tracer);
    expect(tracer.warnings).toHaveLength(1);
  });

  test("functions that run, though their names are known, and of none that record themselves", () => {
    const tracer = new Loud();
    // Functions are told apart by what they do, not by their names.
    const ours = relu;
    graph((x: Tensor) => [ours(x), ours(any(x) as unknown as Tensor)], tracer);
    expect(tracer.warnings).toEqual([]);
    graph((x: Tensor) => [dim(x), add(x)], tracer);
    expect(tracer.warnings).toEqual([]);
    const error = thrown(() => graph((x: Tensor) => [dim(x), sub(x)], tracer));
    expect(error.message).toMatch(/compares a traced value by identity.*\(in sub, .*sourceCheck\.test\.ts:\d+:\d+\)/);
  });

  test("what a trace changes and what changes with time, in exports too", async () => {
    await init();
    class Net extends Module {
      steps = 0;
      override forward(x: Tensor): Tensor {
        this.steps++;
        return x.mul(this.steps).add(Date.now() % 2);
      }
    }
    const expected = [
      expect.stringMatching(/^`this\.steps\+\+` changes something outside.*\(line 2, column \d+ of forward of Net\)$/),
      expect.stringMatching(/^`Date\.now\(\)` gives one time/),
    ];
    const tracer = new Loud();
    tracer.trace(new Net());
    expect(tracer.warnings.map(({ reason }) => reason)).toEqual(expected);
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    class Exported extends Module {
      override forward(x: Tensor): Tensor {
        calls += 1;
        return x.mul(performance.now() * 0);
      }
    }
    try {
      exportProgram(new Exported(), [tensor([1, 2])]);
      expect(warn.mock.calls.map(([text]) => text as string)).toEqual([
        expect.stringContaining("`calls += 1` changes something outside"),
        expect.stringContaining("`performance.now()` gives one time"),
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  test("numbers that are drawn while tracing, on the console", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    graph((x: Tensor) => [x, Math.random()]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("one number when tracing"));
    warn.mockRestore();
  });
});
