/**
 * How the sizes and strides of an input become symbols: `DimDynamic` and `StatelessSymbolicContext` of
 * `torch.fx.experimental.symbolic_shapes`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import type { DimBounds } from "./dim.ts";

/**
 * What becomes of a size or stride: `DimDynamic`.
 *
 * - `DYNAMIC`: a symbol of its own.
 * - `DUCK`: the symbol of another size that is equal in the examples, else one of its own.
 * - `STATIC`: the number of the example.
 * - `UNBACKED`: a symbol that only data tells. The example says nothing of it, so that 0 and 1 are among its values.
 * - `INFER_STRIDE`, of strides: the product of sizes that it is in the example. Where it is none, it is a symbol, or a number if all
 *   sizes are static.
 *
 * @example
 * ```ts
 * new StatelessSymbolicContext([DimDynamic.UNBACKED, DimDynamic.STATIC]);
 * ```
 */
export const DimDynamic = Object.freeze({
  DYNAMIC: "DYNAMIC",
  DUCK: "DUCK",
  STATIC: "STATIC",
  UNBACKED: "UNBACKED",
  INFER_STRIDE: "INFER_STRIDE",
} as const);

/** One of {@link DimDynamic}. */
export type DimDynamic = (typeof DimDynamic)[keyof typeof DimDynamic];

const OF_SIZES: readonly DimDynamic[] = ["DYNAMIC", "DUCK", "STATIC", "UNBACKED"];
const OF_STRIDES: readonly DimDynamic[] = ["INFER_STRIDE", "DYNAMIC", "DUCK"];

/** What else is said of the symbols of an input. */
export interface SymbolicContextOptions {
  /** What becomes of each stride; `INFER_STRIDE` without it. */
  readonly dynamicStrides?: readonly DimDynamic[];
  /** Names of sizes, by dimension: unbacked sizes of one name are equal, and the program asserts that. */
  readonly shapeIds?: Readonly<Record<number, string>>;
  /** The values that unbacked sizes may have, by dimension. The program asserts them. */
  readonly unbackedBounds?: Readonly<Record<number, DimBounds>>;
}

/**
 * What becomes of the sizes and strides of an input: `StatelessSymbolicContext`. An int has one size, itself.
 *
 * @example
 * ```ts
 * const symbolicContext = new StatelessSymbolicContext([DimDynamic.UNBACKED, DimDynamic.STATIC]);
 * using shapes = new ShapeSession([{ source: "L['x']", value: torch.ones(4, 3), symbolicContext }]);
 * String((shapes.values[0] as TensorMeta).sizes); // "u0,3"
 * ```
 */
export class StatelessSymbolicContext {
  readonly dynamicSizes: readonly DimDynamic[];
  readonly dynamicStrides: readonly DimDynamic[];
  readonly shapeIds: Readonly<Record<number, string>>;
  readonly unbackedBounds: Readonly<Record<number, DimBounds>>;

  /** @throws {@link ExportError} where something else is said than what a size or stride can become. */
  constructor(dynamicSizes: readonly DimDynamic[], options: SymbolicContextOptions = {}) {
    checkOptions("StatelessSymbolicContext", options, ["dynamicStrides", "shapeIds", "unbackedBounds"]);
    checkEach("dynamicSizes", dynamicSizes, OF_SIZES);
    const {
      dynamicStrides = dynamicSizes.map(() => DimDynamic.INFER_STRIDE),
      shapeIds = {},
      unbackedBounds = {},
    } = options;
    checkEach("dynamicStrides", dynamicStrides, OF_STRIDES);
    checkGiven("StatelessSymbolicContext", isOptions(shapeIds), "an object by dimensions as shapeIds");
    checkGiven("StatelessSymbolicContext", isOptions(unbackedBounds), "an object by dimensions as unbackedBounds");
    if (dynamicStrides.length !== dynamicSizes.length) {
      const counts = `${dynamicStrides.length} strides and ${dynamicSizes.length} sizes`;
      throw fxError("DynamicShapes", `a tensor has as many strides as sizes, and something is said of ${counts}`);
    }
    for (const [dim, it] of Object.entries(unbackedBounds)) checkBounds(dim, it, dynamicSizes);
    this.dynamicSizes = Object.freeze([...dynamicSizes]);
    this.dynamicStrides = Object.freeze([...dynamicStrides]);
    this.shapeIds = Object.freeze({ ...shapeIds });
    this.unbackedBounds = Object.freeze({ ...unbackedBounds });
    Object.freeze(this);
  }
}

function checkBounds(dim: string, bounds: DimBounds, dynamicSizes: readonly DimDynamic[]): void {
  checkOptions("unbackedBounds", bounds, ["min", "max"]);
  if (dynamicSizes[Number(dim)] !== DimDynamic.UNBACKED) {
    throw fxError("DynamicShapes", `unbackedBounds are for unbacked sizes, and dimension ${dim} is none`, {
      help: "say DimDynamic.UNBACKED of the dimension, or leave its bounds out",
    });
  }
  const { min, max } = bounds;
  const areWhole = [min, max].every((it) => it === undefined || Number.isSafeInteger(it));
  checkGiven("unbackedBounds", areWhole, "whole numbers as min and max");
  if (min !== undefined && max !== undefined && min > max) {
    throw fxError("InvalidOption", `no size is between min=${min} and max=${max}, which dimension ${dim} has`);
  }
}

function checkEach(what: string, given: readonly DimDynamic[], known: readonly DimDynamic[]): void {
  checkGiven("StatelessSymbolicContext", Array.isArray(given), `a list of DimDynamic as ${what}`);
  const wrong = given.find((it) => !known.includes(it));
  if (wrong === undefined) return;
  throw fxError("DynamicShapes", `${what} must only contain ${known.join(", ")}, and not ${String(wrong)}`);
}
