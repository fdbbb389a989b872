/**
 * A network that draws a picture as a comic does: ink along the edges, flat colours and dots in the shade. Nobody trained it: its weights are
 * those that books on image processing have.
 *
 * @module
 */
import { F, nn, tensor, torch } from "../ts/dist/index.js";

/** @typedef {import("../ts/dist/index.js").Tensor} Tensor */

/** How many shades of a colour there are. */
const SHADES = 6;
/** The radius of the brush, in pixels. */
const BRUSH = 3;
/** From dot to dot in the shade, in pixels. */
const RASTER = 5;

/** The weights of a Gaussian blur of so many pixels each way, whose sum is one. */
function gaussian(/** @type {number} */ size, /** @type {number} */ sigma) {
  const row = Array.from({ length: size }, (_, at) => Math.exp(-((at - (size - 1) / 2) ** 2) / (2 * sigma ** 2)));
  const total = row.reduce((a, b) => a + b, 0) ** 2;
  return row.map((a) => row.map((b) => (a * b) / total));
}

/** How dark a picture has to be at each pixel for a dot to cover it: dots that stand in rows of 45 degrees. */
function raster(/** @type {number} */ width, /** @type {number} */ height) {
  const levels = new Float32Array(width * height);
  const turn = Math.PI / RASTER / Math.SQRT2;
  levels.forEach((_, at) => {
    const [x, y] = [at % width, Math.floor(at / width)];
    levels[at] = 0.5 + 0.5 * Math.cos((x + y) * turn) * Math.cos((x - y) * turn);
  });
  return tensor(levels, { shape: [1, 1, height, width] });
}

/** Draws pictures of one size: `[1, 3, height, width]` from 0 to 1, and the same comes out. */
export class Comic extends nn.Module {
  blur = new nn.Conv2d(3, 3, 5, { padding: 2, paddingMode: "replicate", groups: 3, bias: false });
  right = new nn.Conv2d(3, 3, 3, { padding: 1, paddingMode: "replicate", groups: 3, bias: false });
  down = new nn.Conv2d(3, 3, 3, { padding: 1, paddingMode: "replicate", groups: 3, bias: false });
  #height;
  #width;
  #isInk;

  /** @param {number} width @param {number} height @param {boolean} isInk whether there are lines and dots alone, on paper */
  constructor(width, height, isInk) {
    super();
    this.#width = width;
    this.#height = height;
    this.#isInk = isInk;
    this.registerBuffer("raster", raster(width, height));
    const blur = [gaussian(5, 1.1)];
    // Sobel's: how much lighter a colour gets to the right, and downwards.
    const right = [[1, 2, 1].map((row) => [-1, 0, 1].map((it) => (it * row) / 4))];
    const down = [[-1, 0, 1].map((it) => [1, 2, 1].map((row) => (it * row) / 4))];
    this.loadStateDict({
      "blur.weight": tensor([blur, blur, blur]),
      "right.weight": tensor([right, right, right]),
      "down.weight": tensor([down, down, down]),
      raster: this.getBuffer("raster"),
    });
  }

  /** @override @param {Tensor} picture */
  forward(picture) {
    const paint = this.painted(picture);
    const light = this.light(paint);
    const paper = this.#isInk ? torch.ones(1, 3, this.#height, this.#width) : this.flat(paint, light);
    const shaded = paper.mul(
      this.dots(light)
        .mul(this.#isInk ? -0.75 : -0.3)
        .add(1),
    );
    return shaded.mul(this.ink(picture).mul(-1).add(1)).clamp(0, 1);
  }

  /** Where the ink is: the ridges of the slope, as Canny finds them, with soft steps in the place of yes and no. @param {Tensor} picture */
  ink(picture) {
    const soft = this.blur.forward(picture);
    // Of all three colours, so that an edge between two that are as light is one.
    const [right, down] = [this.right, this.down].map((slope) => {
      const squares = slope.forward(soft).square();
      return this.sum([0, 1, 2].map((at) => squares.narrow(1, at, 1)));
    });
    const square = right.add(down).add(1e-6);
    const steep = square.sqrt();
    // The steepest one of three pixels in the direction of the slope.
    const across = F.maxPool2d(steep, [1, 3], { stride: 1, padding: [0, 1] });
    const downwards = F.maxPool2d(steep, [3, 1], { stride: 1, padding: [1, 0] });
    const steepest = downwards.add(across.sub(downwards).mul(right.div(square)));
    const ridge = steep.div(steepest).mul(5).sub(4).clamp(0, 1);
    const line = ridge.mul(steep.sub(0.16).mul(35).sigmoid());
    // A pen that is three pixels wide.
    return F.avgPool2d(line, 3, { stride: 1, padding: 1 }).mul(3.2).clamp(0, 1);
  }

  /**
   * Paint: each pixel has the colour of the calmest of the four squares that touch it, as Kuwahara chose; of those that are as calm, a mixture.
   *
   * @param {Tensor} picture
   */
  painted(picture) {
    const means = this.square(picture);
    const spread = this.square(this.light(picture).square()).sub(this.light(means).square());
    const corners = (/** @type {Tensor} */ of) =>
      [0, BRUSH].flatMap((y) => [0, BRUSH].map((x) => of.narrow(2, y, this.#height).narrow(3, x, this.#width)));
    const spreads = corners(spread);
    const least = spreads.reduce((a, b) => torch.minimum(a, b));
    const calm = spreads.map((it) => it.sub(least).mul(-2000).exp());
    return this.sum(corners(means).map((it, at) => it.mul(calm[at]))).div(this.sum(calm));
  }

  /** What is around each pixel, on the whole: squares, by a row and a column. @param {Tensor} of */
  square(of) {
    const around = F.pad(of, [BRUSH, BRUSH, BRUSH, BRUSH], { mode: "replicate" });
    return F.avgPool2d(F.avgPool2d(around, [1, BRUSH + 1], { stride: 1 }), [BRUSH + 1, 1], { stride: 1 });
  }

  /** How light colours are to the eye. @param {Tensor} picture */
  light(picture) {
    return this.sum([0.299, 0.587, 0.114].map((share, at) => picture.narrow(1, at, 1).mul(share)));
  }

  /** @param {readonly Tensor[]} of */
  sum(of) {
    return of.reduce((a, b) => a.add(b));
  }

  /** Few shades, and stronger colours. @param {Tensor} paint @param {Tensor} light */
  flat(paint, light) {
    const scaled = light.mul(SHADES);
    const whole = scaled.floor();
    const shade = whole.add(scaled.sub(whole).sub(0.5).mul(20).sigmoid()).div(SHADES);
    return shade.add(
      paint
        .mul(shade.add(0.03).div(light.add(0.03)))
        .sub(shade)
        .mul(1.4),
    );
  }

  /** How much of a dot covers each pixel. @param {Tensor} light */
  dots(light) {
    return this.getBuffer("raster").sub(light.mul(1.6).add(0.15)).mul(10).sigmoid();
  }
}
