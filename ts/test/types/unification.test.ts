import { describe, expect, it } from "vitest";
import { unification } from "../../src/index.ts";

const { Dispatcher, isvar, reify, reifyRules, unify, unifyRules, Var, variables } = unification;

class Base {
  readonly kind: string = "base";
}

class Derived extends Base {
  override readonly kind: string = "derived";
}

class Point {
  readonly x: unknown;
  readonly y: unknown;
  constructor(x: unknown, y: unknown) {
    this.x = x;
    this.y = y;
  }
}

describe("unification", () => {
  it("finds what unknowns stand for", () => {
    const [x, y] = [new Var("x"), new Var("y")];
    const found = unify([1, x, [y, 5]], [1, 2, [x, 5]]);
    if (found === false) throw new Error("they are the same for x = y = 2");
    expect(reify({ kept: x }, found)).toEqual({ kept: x });
    expect(reify([y, new Map([["x", new Var("x")]])], found)).toEqual([2, new Map([["x", 2]])]);
    expect(unify([x, x], [1, 2])).toBe(false);
    expect(unify([x], [1, 2])).toBe(false);
    expect(String(x)).toBe("~x");
  });

  it("takes other values for unknowns where they are declared", () => {
    const found = variables(["a"], () => unify(["a", 2], [1, 2]));
    expect(found !== false && found.get("a")).toBe(1);
    expect(isvar("a")).toBe(false);
    expect(unify("a", 1)).toBe(false);
  });

  it("dispatches by classes, one's own too", () => {
    const x = new Var();
    expect(unify(new Point(1, x), new Point(1, 3))).toBe(false);
    unifyRules.add([Point, Point], (a: Point, b: Point, s: unification.Substitution) =>
      unify([a.x, a.y], [b.x, b.y], s),
    );
    reifyRules.add(
      [Point],
      (point: Point, s: unification.Substitution) => new Point(reify(point.x, s), reify(point.y, s)),
    );
    const found = unify(new Point(1, x), new Point(1, 3));
    expect(found !== false && reify(new Point(x, x), found)).toEqual(new Point(3, 3));
  });

  it("calls the most specific implementation, and refuses what is ambiguous", () => {
    const pick = new Dispatcher<string>("pick")
      .add([Base, Object], () => "left")
      .add([Derived, Object], () => "derived");
    expect([pick.call(new Base(), 1), pick.call(new Derived(), 1)]).toEqual(["left", "derived"]);
    pick.add([Object, Base], () => "right");
    expect(() => pick.call(new Base(), new Base())).toThrow(
      /several implementations of pick fit \(Base, Base\) alike/u,
    );
    expect(() => pick.call(1, 2)).toThrow(/could not find a signature for pick: <Number, Number>/u);
  });
});
