/**
 * A pen for a canvas. Lines of one look in a row are one path: thousands of strokes would take longer than a frame.
 *
 * @module
 */
import type { BoxLook, Pen, TextLook, WireLook } from "./drawing.ts";

/** What of a canvas's context is drawn with. */
export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const FONT = "system-ui, sans-serif";
const ARROW = 4;

/** A pen for a canvas whose context is scaled and moved already. {@link CanvasPen.flush} ends a drawing. */
export class CanvasPen implements Pen {
  readonly #context: Context;
  readonly #texts: Map<string, string>;
  #bars: string | undefined;
  #wires: WireLook | undefined;
  #font = "";

  /** Texts that were cut are kept in `texts`, for the next frame. */
  constructor(context: Context, texts: Map<string, string>) {
    this.#context = context;
    this.#texts = texts;
  }

  box(x: number, y: number, width: number, height: number, { fill, border, line, radius }: BoxLook): void {
    this.flush();
    const context = this.#context;
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = border;
    context.lineWidth = line;
    context.stroke();
  }

  bar(x: number, y: number, width: number, height: number, fill: string): void {
    if (this.#bars !== fill) {
      this.flush();
      this.#bars = fill;
      this.#context.fillStyle = fill;
    }
    this.#context.fillRect(x, y, width, height);
  }

  text(x: number, y: number, text: string, width: number, { fill, size, bold }: TextLook): void {
    this.flush();
    const context = this.#context;
    const font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    if (this.#font !== font) context.font = this.#font = font;
    context.fillStyle = fill;
    context.fillText(this.#cut(text, width, font), x, y);
  }

  wire(points: ArrayLike<number>, from: number, to: number, look: WireLook): void {
    const context = this.#context;
    if (this.#wires?.stroke !== look.stroke || this.#wires.line !== look.line) {
      this.flush();
      this.#wires = look;
      context.beginPath();
      context.strokeStyle = look.stroke;
      context.lineWidth = look.line;
    }
    let [x, y] = [points[2 * from] as number, points[2 * from + 1] as number];
    context.moveTo(x, y);
    for (let at = from + 1; at < to; at++) {
      const [nextX, nextY] = [points[2 * at] as number, points[2 * at + 1] as number];
      if (look.isFine && nextX !== x) {
        const middle = (y + nextY) / 2;
        context.bezierCurveTo(x, middle, nextX, middle, nextX, nextY);
      } else context.lineTo(nextX, nextY);
      [x, y] = [nextX, nextY];
    }
    if (!look.isFine) return;
    context.moveTo(x - ARROW, y - ARROW);
    context.lineTo(x, y);
    context.lineTo(x + ARROW, y - ARROW);
  }

  /** Draws what was put off. */
  flush(): void {
    if (this.#wires !== undefined) this.#context.stroke();
    this.#wires = undefined;
    this.#bars = undefined;
  }

  #cut(text: string, width: number, font: string): string {
    const key = `${font} ${width} ${text}`;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    let [least, most] = [0, text.length];
    const fits = (length: number): boolean =>
      this.#context.measureText(length < text.length ? `${text.slice(0, length)}…` : text).width <= width;
    if (!fits(most)) {
      while (least + 1 < most) {
        const middle = (least + most) >> 1;
        if (fits(middle)) least = middle;
        else most = middle;
      }
      most = least;
    }
    const cut = most < text.length ? `${text.slice(0, most)}…` : text;
    this.#texts.set(key, cut);
    return cut;
  }
}
