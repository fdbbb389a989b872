/**
 * Padding: what stands beyond the edges.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin, markShared } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, perDimension, type Scalar, type Size, str } from "./sizes.ts";
import { badInput, rankOf } from "./state.ts";

/** How much a padding adds. */
export interface PadOptions {
  /** As much on every side, or before and after each dimension, the last dimension first. */
  readonly padding?: Size;
}

/** How a constant padding is made. */
export interface ConstantPadOptions extends PadOptions {
  /** What is added. */
  readonly value?: Scalar;
}

type PadArguments = Arguments<[padding: Size], [], PadOptions>;
type ConstantPadArguments = Arguments<[padding: Size, value: Scalar], [], ConstantPadOptions>;

/** What all paddings are. */
abstract class PadNd extends Module {
  readonly padding: readonly number[];

  protected constructor(dims: number, padding: Size) {
    super();
    this.padding = perDimension(padding, 2 * dims, "padding");
  }

  override extraRepr(): string {
    return str(this.padding);
  }
}

function paddingOf(name: string, given: PadArguments): Size {
  return bind<PadOptions>(name, given, ["padding"], {}).padding;
}

/** What paddings with a mirror image are. */
abstract class ReflectionPadNd extends PadNd {
  override forward(input: Tensor): Tensor {
    return F.pad(input, this.padding, "reflect");
  }
}

/** Adds the mirror image of a sequence, `(N, C, L)` or `(C, L)`. */
export class ReflectionPad1d extends ReflectionPadNd {
  constructor(...given: PadArguments) {
    super(1, paddingOf("ReflectionPad1d", given));
  }
}

/** Adds the mirror image of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class ReflectionPad2d extends ReflectionPadNd {
  constructor(...given: PadArguments) {
    super(2, paddingOf("ReflectionPad2d", given));
  }
}

/** Adds the mirror image of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class ReflectionPad3d extends ReflectionPadNd {
  constructor(...given: PadArguments) {
    super(3, paddingOf("ReflectionPad3d", given));
  }
}

/** What paddings that repeat the edges are. */
abstract class ReplicationPadNd extends PadNd {
  override forward(input: Tensor): Tensor {
    return F.pad(input, this.padding, "replicate");
  }
}

/** Repeats the edges of a sequence, `(N, C, L)` or `(C, L)`. */
export class ReplicationPad1d extends ReplicationPadNd {
  constructor(...given: PadArguments) {
    super(1, paddingOf("ReplicationPad1d", given));
  }
}

/** Repeats the edges of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class ReplicationPad2d extends ReplicationPadNd {
  constructor(...given: PadArguments) {
    super(2, paddingOf("ReplicationPad2d", given));
  }
}

/** Repeats the edges of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class ReplicationPad3d extends ReplicationPadNd {
  constructor(...given: PadArguments) {
    super(3, paddingOf("ReplicationPad3d", given));
  }
}

/** What paddings with the other end are. */
abstract class CircularPadNd extends PadNd {
  override forward(input: Tensor): Tensor {
    const least = this.padding.length / 2 + 1;
    const rank = rankOf(this, input);
    if (rank === least || rank === least + 1) return F.pad(input, this.padding, "circular");
    throw badInput(`expected ${least}D or ${least + 1}D input (got ${rank}D input)`);
  }
}

/** Adds what stands at the other end of a sequence, `(N, C, L)` or `(C, L)`. */
export class CircularPad1d extends CircularPadNd {
  constructor(...given: PadArguments) {
    super(1, paddingOf("CircularPad1d", given));
  }
}

/** Adds what stands at the other end of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class CircularPad2d extends CircularPadNd {
  constructor(...given: PadArguments) {
    super(2, paddingOf("CircularPad2d", given));
  }
}

/** Adds what stands at the other end of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class CircularPad3d extends CircularPadNd {
  constructor(...given: PadArguments) {
    super(3, paddingOf("CircularPad3d", given));
  }
}

/** What paddings with a constant are. */
abstract class ConstantPadNd extends PadNd {
  readonly value: Scalar;

  protected constructor(dims: number, { padding, value }: { readonly padding: Size; readonly value: Scalar }) {
    super(dims, padding);
    this.value = value;
  }

  override forward(input: Tensor): Tensor {
    return F.pad(input, this.padding, "constant", this.value);
  }

  override extraRepr(): string {
    return fields({ padding: this.padding, value: this.value });
  }
}

function constantOf(name: string, given: ConstantPadArguments) {
  return bind<ConstantPadOptions>(name, given, ["padding", "value"], {});
}

/** Adds a constant around a sequence, `(N, C, L)` or `(C, L)`. */
export class ConstantPad1d extends ConstantPadNd {
  constructor(...given: ConstantPadArguments) {
    super(1, constantOf("ConstantPad1d", given));
  }
}

/** Adds a constant around an image, `(N, C, H, W)` or `(C, H, W)`. */
export class ConstantPad2d extends ConstantPadNd {
  constructor(...given: ConstantPadArguments) {
    super(2, constantOf("ConstantPad2d", given));
  }
}

/** Adds a constant around a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class ConstantPad3d extends ConstantPadNd {
  constructor(...given: ConstantPadArguments) {
    super(3, constantOf("ConstantPad3d", given));
  }
}

/** Adds zeros around a sequence, `(N, C, L)` or `(C, L)`. */
export class ZeroPad1d extends ConstantPad1d {
  constructor(...given: PadArguments) {
    super(paddingOf("ZeroPad1d", given), float(0));
  }

  override extraRepr(): string {
    return str(this.padding);
  }
}

/** Adds zeros around an image, `(N, C, H, W)` or `(C, H, W)`. */
export class ZeroPad2d extends ConstantPad2d {
  constructor(...given: PadArguments) {
    super(paddingOf("ZeroPad2d", given), float(0));
  }

  override extraRepr(): string {
    return str(this.padding);
  }
}

/** Adds zeros around a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class ZeroPad3d extends ConstantPad3d {
  constructor(...given: PadArguments) {
    super(paddingOf("ZeroPad3d", given), float(0));
  }

  override extraRepr(): string {
    return str(this.padding);
  }
}

markBuiltin({
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
});
markBuiltin({ CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d });
for (const it of [ReflectionPadNd, ReplicationPadNd, CircularPadNd, ConstantPadNd]) markShared(it);
markBuiltin({ ZeroPad1d, ZeroPad2d, ZeroPad3d });
