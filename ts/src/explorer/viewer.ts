/**
 * The canvas: where the picture is on it, what moves it, and when it is drawn.
 *
 * @module
 */
import { CanvasPen, type Context } from "./canvasPen.ts";
import { boxAt, draw, isOnSign, type Marks, NO_MARKS, type Picture, type View } from "./drawing.ts";
import { LIGHT, type Theme } from "./theme.ts";

/** What the viewer tells. */
export interface ViewerEvents {
  /** A box was clicked: -1 for the ground. */
  readonly select: (box: number) => void;
  /** A box was clicked twice. */
  readonly toggle: (box: number) => void;
  /** The picture was moved or scaled. */
  readonly move: () => void;
}

/** The middle of the view in the picture, and how many pixels a length of 1 has. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

const MOST_SCALE = 4;
const LEAST_SCALE = 0.001;
/** A click moves by less than this. */
const CLICK = 4;
/** How much of the view is around what is fitted into it. */
const MARGIN = 24;
/** A drawing that takes longer than this is moved as an image until the picture is still. */
const SLOW = 10;
/** How much larger than the view that image is, in each direction. */
const SPARE = 0.5;
/** After so many milliseconds without a move the picture is still. */
const STILL = 120;
/** How far a picture of few boxes is enlarged when it is fitted. */
const MOST_FIT = 1.25;

/** An image of a part of the picture. */
interface Snapshot {
  readonly image: OffscreenCanvas;
  readonly view: View;
}

/** Shows a picture on a canvas, which pointers and wheels move. */
export class Viewer {
  /** How long the last drawing took, in milliseconds. */
  drawTime = 0;
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #events: ViewerEvents;
  readonly #texts = new Map<string, string>();
  readonly #pointers = new Map<number, PointerEvent>();
  #picture: Picture | undefined;
  #marks: Marks = NO_MARKS;
  #theme: Theme = LIGHT;
  #camera: Camera = { x: 0, y: 0, scale: 1 };
  #frame = 0;
  #snapshot: Snapshot | undefined;
  #still: ReturnType<typeof setTimeout> | undefined;
  #isMoving = false;
  #pressed: readonly [x: number, y: number] | undefined;

  constructor(canvas: HTMLCanvasElement, events: ViewerEvents) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.#events = events;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#drag(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", (event) => this.#pointers.delete(event.pointerId));
    canvas.addEventListener("dblclick", (event) => {
      const box = this.#boxOf(event);
      // On the sign, each of the two clicks has done it.
      if (this.#picture === undefined || box < 0 || isOnSign(this.#picture, box, ...this.#under(event))) return;
      this.#events.toggle(box);
    });
  }

  get picture(): Picture | undefined {
    return this.#picture;
  }

  get camera(): Camera {
    return this.#camera;
  }

  set camera(camera: Camera) {
    this.#moveTo(camera);
  }

  /** Shows a picture. Where a box is given for both, it stays where it is on the screen. */
  show(picture: Picture, anchor?: { readonly before: number; readonly now: number }): void {
    const before = anchor === undefined ? undefined : this.#cornerOf(anchor.before);
    this.#picture = picture;
    const now = anchor === undefined ? undefined : this.#cornerOf(anchor.now);
    if (before !== undefined && now !== undefined) {
      const { x, y, scale } = this.#camera;
      this.#camera = { x: x + now[0] - before[0], y: y + now[1] - before[1], scale };
    }
    this.redraw();
  }

  /** Draws boxes with other marks. */
  mark(marks: Marks): void {
    this.#marks = marks;
    this.redraw();
  }

  /** Draws in other colours. */
  paint(theme: Theme): void {
    this.#theme = theme;
    this.redraw();
  }

  /** Draws with the next frame. */
  redraw(): void {
    this.#snapshot = undefined;
    this.#request();
  }

  /** Shows the whole picture, or as much of its upper end as can be read. */
  fit(): void {
    if (this.#picture === undefined) return;
    const { width, height } = this.#picture.layout;
    const [pixelsWide, pixelsHigh] = this.#size();
    const whole = Math.min((pixelsWide - MARGIN) / width, (pixelsHigh - MARGIN) / height, MOST_FIT);
    this.#moveTo({ x: width / 2, y: height / 2, scale: whole });
  }

  /** Shows the upper end of the picture, in a size that can be read. */
  begin(): void {
    this.fit();
    const { scale } = this.#camera;
    if (this.#picture === undefined || scale >= 0.6) return;
    const readable = Math.min(1, Math.max(0.6, (this.#size()[0] - MARGIN) / this.#picture.layout.width));
    this.#moveTo({ ...this.#camera, y: (this.#size()[1] / 2 - MARGIN) / readable, scale: readable });
  }

  /** Moves a box into the middle, unless it is in view and can be read. */
  reveal(box: number): void {
    if (this.#picture === undefined) return;
    const { boxes } = this.#picture.layout;
    const at = 4 * box;
    const [x, y] = [boxes[at] as number, boxes[at + 1] as number];
    const [width, height] = [boxes[at + 2] as number, boxes[at + 3] as number];
    const { left, right, top, bottom, scale } = this.#view();
    if (x >= left && x + width <= right && y >= top && y + height <= bottom && scale >= 0.4) return;
    const isLarge = height > bottom - top;
    const readable = Math.max(scale, 0.8);
    const middle = isLarge ? y + this.#size()[1] / 2 / readable - MARGIN : y + height / 2;
    this.#moveTo({ x: x + width / 2, y: middle, scale: readable });
  }

  /** Moves the view by pixels. */
  pan(dx: number, dy: number): void {
    const { x, y, scale } = this.#camera;
    this.#moveTo({ x: x + dx / scale, y: y + dy / scale, scale });
  }

  /** Scales the picture around a point of the canvas, in pixels; the middle where there is none. */
  zoom(factor: number, around?: readonly [x: number, y: number]): void {
    const [width, height] = this.#size();
    const [px, py] = around ?? [width / 2, height / 2];
    const { x, y, scale } = this.#camera;
    const next = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, scale * factor));
    const [dx, dy] = [px - width / 2, py - height / 2];
    this.#moveTo({ x: x + dx / scale - dx / next, y: y + dy / scale - dy / next, scale: next });
  }

  #moveTo(camera: Camera): void {
    this.#camera = camera;
    this.#isMoving = true;
    clearTimeout(this.#still);
    this.#still = setTimeout(() => {
      this.#isMoving = false;
      if (this.#snapshot !== undefined) this.redraw();
      this.#events.move();
    }, STILL);
    this.#request();
  }

  #request(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #paint(): void {
    const [width, height] = this.#size();
    const ratio = devicePixelRatio;
    const [pixelsWide, pixelsHigh] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== pixelsWide || this.#canvas.height !== pixelsHigh) {
      [this.#canvas.width, this.#canvas.height] = [pixelsWide, pixelsHigh];
    }
    const start = performance.now();
    const view = this.#view();
    if (this.#picture === undefined || !this.#paintSnapshot(view)) this.#paintOn(this.#context, view, width, height);
    this.drawTime = performance.now() - start;
  }

  /** Draws a part of the picture onto a canvas of a size in pixels of the page. */
  #paintOn(context: Context, view: View, width: number, height: number): void {
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.fillStyle = this.#theme.background;
    context.fillRect(0, 0, width, height);
    if (this.#picture === undefined) return;
    context.scale(view.scale, view.scale);
    context.translate(-view.left, -view.top);
    const pen = new CanvasPen(context, this.#texts);
    draw(pen, this.#picture, view, this.#theme, this.#marks);
    pen.flush();
  }

  /** Moves an image of the picture while drawing it anew would take too long for a frame; whether it did. */
  #paintSnapshot(view: View): boolean {
    if (!this.#isMoving || (this.#snapshot === undefined && this.drawTime < SLOW)) return false;
    let snapshot = this.#snapshot;
    const reaches =
      snapshot !== undefined &&
      view.scale < snapshot.view.scale * 2 &&
      view.scale > snapshot.view.scale / 2 &&
      this.#covers(snapshot.view, view);
    if (snapshot === undefined || !reaches) snapshot = this.#snapshot = this.#take(view);
    const context = this.#context;
    const ratio = devicePixelRatio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.#theme.background;
    context.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    const factor = view.scale / snapshot.view.scale;
    context.drawImage(
      snapshot.image,
      (snapshot.view.left - view.left) * view.scale * ratio,
      (snapshot.view.top - view.top) * view.scale * ratio,
      snapshot.image.width * factor,
      snapshot.image.height * factor,
    );
    return true;
  }

  /** Whether an image has all that is in view of the picture itself. */
  #covers(image: View, view: View): boolean {
    const { width, height } = (this.#picture as Picture).layout;
    return (
      image.left <= Math.max(0, view.left) &&
      image.top <= Math.max(0, view.top) &&
      image.right >= Math.min(width, view.right) &&
      image.bottom >= Math.min(height, view.bottom)
    );
  }

  #take(view: View): Snapshot {
    const [width, height] = [view.right - view.left, view.bottom - view.top];
    const wide: View = {
      left: view.left - SPARE * width,
      right: view.right + SPARE * width,
      top: view.top - SPARE * height,
      bottom: view.bottom + SPARE * height,
      scale: view.scale,
    };
    const [pixelsWide, pixelsHigh] = [(wide.right - wide.left) * view.scale, (wide.bottom - wide.top) * view.scale];
    const image = new OffscreenCanvas(
      Math.ceil(pixelsWide * devicePixelRatio),
      Math.ceil(pixelsHigh * devicePixelRatio),
    );
    const context = image.getContext("2d", { alpha: false }) as OffscreenCanvasRenderingContext2D;
    this.#paintOn(context, wide, pixelsWide, pixelsHigh);
    return { image, view: wide };
  }

  #size(): [width: number, height: number] {
    return [Math.max(1, this.#canvas.clientWidth), Math.max(1, this.#canvas.clientHeight)];
  }

  #view(): View {
    const [width, height] = this.#size();
    const { x, y, scale } = this.#camera;
    const [halfWidth, halfHeight] = [width / 2 / scale, height / 2 / scale];
    return { left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight, scale };
  }

  #cornerOf(box: number): [x: number, y: number] | undefined {
    const boxes = this.#picture?.layout.boxes;
    if (boxes === undefined || box < 0) return undefined;
    return [(boxes[4 * box] as number) + (boxes[4 * box + 2] as number) / 2, boxes[4 * box + 1] as number];
  }

  #placeOf({ clientX, clientY }: MouseEvent): [x: number, y: number] {
    const { left, top } = this.#canvas.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }

  /** The place of the picture that is under a pointer. */
  #under(event: MouseEvent): [x: number, y: number] {
    const [px, py] = this.#placeOf(event);
    const { left, top, scale } = this.#view();
    return [left + px / scale, top + py / scale];
  }

  #boxOf(event: MouseEvent): number {
    return this.#picture === undefined ? -1 : boxAt(this.#picture, ...this.#under(event));
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey) {
      this.pan((event.deltaX || event.deltaY) * unit, 0);
      return;
    }
    // A pinch on a touchpad comes as a wheel with the control key, in smaller steps.
    this.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0015)), this.#placeOf(event));
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, event);
    this.#pressed = this.#pointers.size === 1 ? [event.clientX, event.clientY] : undefined;
  }

  /** One pointer moves the picture, two scale it too. */
  #drag(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) return;
    this.#pointers.set(event.pointerId, event);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    const other = [...this.#pointers.values()].find((it) => it.pointerId !== event.pointerId);
    if (other === undefined) {
      this.pan(-dx, -dy);
      return;
    }
    const length = (it: PointerEvent): number => Math.hypot(it.clientX - other.clientX, it.clientY - other.clientY);
    this.zoom(length(event) / Math.max(1, length(before)), this.#placeOf(other));
  }

  #up(event: PointerEvent): void {
    this.#pointers.delete(event.pointerId);
    if (this.#pressed === undefined) return;
    const [x, y] = this.#pressed;
    this.#pressed = undefined;
    if (Math.hypot(event.clientX - x, event.clientY - y) >= CLICK) return;
    const box = this.#boxOf(event);
    const isOnIt = this.#picture !== undefined && box >= 0 && isOnSign(this.#picture, box, ...this.#under(event));
    if (isOnIt) this.#events.toggle(box);
    else this.#events.select(box);
  }
}

/** The most pixels of an image, in each direction: what browsers have canvases for. */
const MOST_PIXELS = 8192;

/** The whole picture as a PNG. One that is larger than canvases are is scaled down. */
export async function pngOf(picture: Picture, theme: Theme, marks: Marks): Promise<Blob> {
  const { width, height } = picture.layout;
  const scale = Math.min(2, MOST_PIXELS / width, MOST_PIXELS / height);
  const image = new OffscreenCanvas(Math.max(1, Math.floor(width * scale)), Math.max(1, Math.floor(height * scale)));
  const context = image.getContext("2d", { alpha: false }) as OffscreenCanvasRenderingContext2D;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, image.width, image.height);
  context.scale(scale, scale);
  const pen = new CanvasPen(context, new Map());
  draw(pen, picture, { left: 0, top: 0, right: width, bottom: height, scale }, theme, marks);
  pen.flush();
  return await image.convertToBlob({ type: "image/png" });
}
