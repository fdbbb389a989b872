/** What modules are made of and give, and what the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import { nn, type Parameter, type Tensor } from "tracefx";

declare const x: Tensor;

export function results(): void {
  const linear = new nn.Linear(3, 4, { bias: false, dtype: "float64" });
  expectTypeOf(linear.weight).toEqualTypeOf<Parameter>();
  expectTypeOf(linear.bias).toEqualTypeOf<Parameter | null>();
  expectTypeOf(linear.forward(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(linear.call(x)).toEqualTypeOf<unknown>();
  expectTypeOf(linear(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(new nn.Sequential(linear)(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(new nn.Sequential(linear).at(0)(x, 1)).toEqualTypeOf<unknown>();
  expectTypeOf(linear.eval()).toEqualTypeOf<nn.Linear>();
  expectTypeOf(linear.stateDict()).toEqualTypeOf<Map<string, Tensor>>();
  expectTypeOf(linear.parameters()).toEqualTypeOf<Tensor[]>();
  expectTypeOf(linear.getSubmodule("it")).toEqualTypeOf<nn.Module>();
  expectTypeOf(new nn.GRU(2, 3).forward(x)).toEqualTypeOf<readonly [Tensor, Tensor]>();
}

/** Arguments by position and by name, as in Python. */
export function waysToMake(): void {
  expectTypeOf(new nn.Linear(3, 4)).toEqualTypeOf<nn.Linear>();
  expectTypeOf(new nn.Linear(3, 4, false)).toEqualTypeOf<nn.Linear>();
  expectTypeOf(new nn.Linear(3, { outFeatures: 4 })).toEqualTypeOf<nn.Linear>();
  expectTypeOf(new nn.Linear({ inFeatures: 3, outFeatures: 4 })).toEqualTypeOf<nn.Linear>();
  expectTypeOf(new nn.Conv2d(1, 2, [3, 3], { padding: "same" })).toEqualTypeOf<nn.Conv2d>();
}

/** A module of one's own may take whatever it likes and give it. */
export class Scaled extends nn.Module {
  override forward(input: Tensor, factor: number): Tensor {
    return input.mul(factor);
  }
}

export function refused(): void {
  expectTypeOf(new Scaled().forward(x, 2)).toEqualTypeOf<Tensor>();
  expectTypeOf(new Scaled()(x, 2)).toEqualTypeOf<Tensor>();
  // @ts-expect-error a factor is a number
  new Scaled()(x, "2");
  // @ts-expect-error a factor is a number
  new Scaled().forward(x, "2");
  // @ts-expect-error a module without a constructor of its own takes nothing
  new Scaled(3);
  // @ts-expect-error features are numbers
  new nn.Linear("3", 4);
  // @ts-expect-error there is no such option
  new nn.Linear(3, 4, { biases: false });
  // @ts-expect-error there are too many arguments
  new nn.Linear(3, 4, true, false);
  // @ts-expect-error there is no such mode of padding
  new nn.Conv2d(1, 2, 3, { padding: "some" });
  // @ts-expect-error there is no such nonlinearity
  new nn.RNN(2, 3, { nonlinearity: "gelu" });
  // @ts-expect-error a tensor is no module
  new nn.Sequential(x);
  // @ts-expect-error features do not change
  new nn.Linear(3, 4).inFeatures = 5;
  // @ts-expect-error a module is no parameter
  new nn.Linear(3, 4).weight = new nn.ReLU();
}
