/**
 * Programs with other modules in them, as `_swap_modules` of PyTorch 2.13 makes them.
 */
import { beforeAll, describe, expect, test } from "vitest";
import {
  type ExportedProgram,
  exportProgram,
  init,
  load,
  Module,
  nn,
  operator,
  save,
  swapModules,
  type Tensor,
  tuple,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { full, message, numbers, text } from "../ported/said.ts";

beforeAll(() => init());

class Doubles extends Module {
  readonly weight: nn.Parameter;
  constructor(by: number) {
    super();
    this.weight = new nn.Parameter(full(by, 3));
  }
  override forward(x: Tensor): Tensor {
    return operator.mul(x, this.weight);
  }
}

class Pair extends Module {
  override forward(xs: Tensor[], { k }: { k: Tensor }): { a: Tensor; b: Tensor[] } {
    const [x, y] = xs as [Tensor, Tensor];
    return { a: operator.add(x, k), b: [operator.mul(y, k)] };
  }
}

class Joined extends Module {
  override forward(d: { a: Tensor; b: Tensor[] }): Tensor {
    return operator.sub(d.a, d.b[0] as Tensor);
  }
}

class Chained extends Module {
  readonly foo = new Doubles(2);
  readonly bar = new Doubles(3);
  override forward(x: Tensor): Tensor {
    return this.bar(this.foo(x));
  }
}

class Apart extends Module {
  readonly foo = new Doubles(2);
  readonly bar = new Doubles(3);
  override forward(x: Tensor, y: Tensor): Tensor {
    return this.bar(operator.add(this.foo(x).relu(), y));
  }
}

class Structured extends Module {
  readonly pair = new Pair();
  readonly joined = new Joined();
  override forward(x: Tensor, y: Tensor): unknown {
    const pair = this.pair.call(tuple(x, y), { k: x });
    return tuple(this.joined.call(pair), { y });
  }
}

class Nested extends Module {
  readonly m = new Chained();
  override forward(x: Tensor, { z }: { z: Tensor }): Tensor {
    return operator.add(this.m(x), z);
  }
}

class Repeated extends Module {
  readonly foo = new Doubles(2);
  override forward(x: Tensor): Tensor {
    return this.foo(this.foo(x).relu());
  }
}

const x = (): Tensor => numbers(2, 3);
const y = (): Tensor => numbers(2, 3).add(1);

function exported(model: Module, args: readonly unknown[], preserved: readonly string[], kwargs = {}): ExportedProgram {
  return exportProgram(model, args, kwargs, { preserveModuleCallSignature: preserved });
}

describe("swapModules", () => {
  const recorded = experimental("swapped_modules").map((line) =>
    line.replace(/, grad_fn=<\w+>/, "").replace("'y'", "y"),
  );

  test("answers as _swap_modules does", () => {
    const said: string[] = [];
    const swapped = (
      model: Module,
      args: readonly unknown[],
      modules: Readonly<Record<string, Module>>,
      preserved: readonly string[],
      kwargs = {},
    ): void => {
      const gm = swapModules(exported(model, args, preserved, kwargs), modules);
      said.push(String(gm.graph), text(gm.call(...args, ...(Object.keys(kwargs).length === 0 ? [] : [kwargs]))));
    };
    swapped(new Chained(), [x()], { foo: new Doubles(5) }, ["foo"]);
    swapped(new Chained(), [x()], { foo: new Doubles(5), bar: new Doubles(7) }, ["foo", "bar"]);
    swapped(new Apart(), [x(), y()], { foo: new Doubles(5) }, ["foo"]);
    swapped(new Apart(), [x(), y()], { bar: new Doubles(5), foo: new Doubles(7) }, ["foo", "bar"]);
    swapped(new Structured(), [x(), y()], { pair: new Pair() }, ["pair", "joined"]);
    swapped(new Structured(), [x(), y()], { joined: new Joined() }, ["joined"]);
    swapped(new Structured(), [x(), y()], { pair: new Pair(), joined: new Joined() }, ["pair", "joined"]);
    swapped(new Nested(), [x()], { "m.bar": new Doubles(5) }, ["m.bar"], { z: y() });
    expect(said).toEqual(recorded.slice(0, -1));
  });

  test("a module that is called twice is called twice, where PyTorch refuses it", () => {
    expect(recorded.at(-1)).toContain("Invalid partition");
    const gm = swapModules(exported(new Repeated(), [x()], ["foo"]), { foo: new Doubles(5) });
    expect(String(gm.call(x()))).toBe(String(x().mul(5).relu().mul(5)));
  });

  test("a module takes its parameters with it", () => {
    const program = exported(new Nested(), [x()], ["m"], { z: y() });
    const gm = swapModules(program, new Map([["m", new Doubles(5)]]));
    expect([...gm.namedParameters().keys()]).toEqual(["m.weight"]);
    expect(String(gm.call(x(), { z: y() }))).toBe(String(x().mul(5).add(y())));
    expect(String(program.module()(x(), { z: y() }))).toBe(String(x().mul(6).add(y())));
  });

  test("results are those of the signature, in whichever order they are made", () => {
    class Turned extends Module {
      override forward(it: Tensor): readonly Tensor[] {
        const first = it.add(1);
        return [it.mul(2), first];
      }
    }
    class Around extends Module {
      readonly turned = new Turned();
      override forward(it: Tensor): Tensor {
        const [a, b] = this.turned.call(it) as [Tensor, Tensor];
        return a.sub(b);
      }
    }
    const gm = swapModules(exported(new Around(), [x()], ["turned"]), { turned: new Turned() });
    expect(String(gm.call(x()))).toBe(String(new Around().call(x())));
  });

  test("programs of files are swapped, too", async () => {
    const program = await load(save(exported(new Chained(), [x()], ["foo"])));
    expect(String(swapModules(program, { foo: new Doubles(5) }).graph)).toBe(recorded[0]);
  });

  test("what cannot be swapped is refused", () => {
    const program = exported(new Apart(), [x(), y()], ["foo"]);
    expect(message(() => swapModules(program, { bar: new Doubles(5) }))).toBe(
      "the program does not say what `bar` takes and gives",
    );
    expect(message(() => swapModules(program, { baz: new Doubles(5) }))).toBe(
      "no node of the program is of a module `baz`",
    );
    const nested = exported(new Nested(), [x()], ["m", "m.bar"], { z: y() });
    expect(message(() => swapModules(nested, { m: new Doubles(5), "m.bar": new Doubles(7) }))).toBe(
      "`m.bar` is a part of `m`, which is swapped as a whole",
    );
    expect(() => swapModules(program, { foo: "Doubles" as never })).toThrow("modules by path");
    expect(() => swapModules(program.unlift() as never, {})).toThrow("an ExportedProgram");
  });
});
