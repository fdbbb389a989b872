/**
 * A slice of a value as an image, with a scale, and with what chooses which slice it is.
 *
 * @module
 */
import { choice, part } from "./dom.ts";
import type { Elements } from "./run.ts";
import { colourOf, firstSlice, placeOf, rangeOf, type Slice, type SliceChoice, sliceOf } from "./slices.ts";
import type { Rgb } from "./theme.ts";

/** How wide the scale is, in points. */
const SCALE = 128;

/** How wide and how high an image is at most, in the unit `rem`. */
const LARGEST = 14;

/** The image of a value, with its controls; undefined of a value that has one element, or none. */
export function sliceView(elements: Elements, what: string): HTMLElement | undefined {
  const first = firstSlice(elements);
  return first && new SliceView(elements, first, what).element;
}

class SliceView {
  readonly element = part("div", "slice");
  readonly #elements: Elements;
  readonly #what: string;
  readonly #canvas = part("canvas", "values");
  readonly #scale = part("canvas", "scale");
  readonly #least = part("span", "least");
  readonly #most = part("span", "most");
  readonly #others = part("p", "others");
  readonly #told = part("output", "told");
  readonly #pickers = part("div", "pickers");
  #choice: SliceChoice;
  #slice: Slice;
  /** The element that is told of. */
  #at: readonly [row: number, column: number] = [0, 0];

  constructor(elements: Elements, first: SliceChoice, what: string) {
    this.#elements = elements;
    this.#what = what;
    this.#choice = first;
    this.#slice = sliceOf(elements, first);
    for (const it of [this.#canvas, this.#scale]) it.setAttribute("role", "img");
    this.#canvas.tabIndex = 0;
    this.#canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.#canvas.addEventListener("keydown", (event) => this.#press(event));
    const legend = part("div", "legend");
    legend.append(this.#least, this.#scale, this.#most);
    this.#others.textContent = "Magenta is NaN, black is infinite.";
    this.#pick();
    this.element.append(this.#pickers, this.#canvas, legend, this.#others, this.#told);
    this.#draw();
  }

  /** Which two dimensions are seen, and where in the others. */
  #pick(): void {
    const { shape } = this.#elements;
    const { rows, columns, places } = this.#choice;
    const parts: HTMLElement[] = [];
    if (shape.length > 2) {
      const names = Object.fromEntries(shape.map((size, at) => [at, `${at} (${size})`]));
      for (const [about, chosen] of Object.entries({ rows, columns })) {
        const select = choice(`Dimension of the ${about}`, names);
        select.value = String(chosen);
        select.addEventListener("change", () => this.#turn(about as "rows" | "columns", Number(select.value)));
        parts.push(labelled(about, select));
      }
    }
    for (const [at, size] of shape.entries()) {
      if (rows < 0 || at === rows || at === columns || size < 2) continue;
      const place = part("input", "place");
      Object.assign(place, { type: "number", min: "0", max: String(size - 1), value: String(places[at] ?? 0) });
      place.ariaLabel = `Place in dimension ${at}, of ${size}`;
      place.addEventListener("input", () => {
        const chosen = Math.min(size - 1, Math.max(0, Math.floor(Number(place.value)) || 0));
        this.#show({ ...this.#choice, places: this.#choice.places.with(at, chosen) });
      });
      parts.push(labelled(`[${at}]`, place));
    }
    this.#pickers.replaceChildren(...parts);
  }

  /** Shows another dimension as rows or columns. One that was the other of the two changes places with it. */
  #turn(which: "rows" | "columns", to: number): void {
    const other = which === "rows" ? "columns" : "rows";
    const { [which]: before, [other]: beside } = this.#choice;
    this.#show({ ...this.#choice, [which]: to, [other]: beside === to ? before : beside });
    this.#pick();
    this.#pickers.querySelector<HTMLElement>(`select[aria-label$="${which}"]`)?.focus();
  }

  #show(chosen: SliceChoice): void {
    this.#choice = chosen;
    this.#slice = sliceOf(this.#elements, chosen);
    this.#draw();
  }

  #draw(): void {
    const { width, height, values, min, max, step } = this.#slice;
    const range = rangeOf(this.#slice);
    paint(this.#canvas, width, height, (at) => {
      const value = values[at];
      return value === undefined ? undefined : colourOf(value, range);
    });
    // As large as there is room for, in the shape of the slice.
    this.#canvas.style.width = `min(100%, ${LARGEST}rem, ${(LARGEST * width) / height}rem)`;
    const [from, to] = range;
    paint(this.#scale, SCALE, 1, (at) => colourOf(from + ((to - from) * at) / (SCALE - 1), range));
    [this.#least.textContent, this.#most.textContent] = [short(from), short(to)];
    this.#scale.ariaLabel = `Colours from ${short(from)} to ${short(to)}`;
    this.#others.hidden = values.every(Number.isFinite);
    const every = step === 1 ? "" : `, one element in ${step} of each direction`;
    this.#canvas.ariaLabel = `${this.#what} as an image of ${height} rows and ${width} columns, from ${short(min)} to ${short(max)}${every}`;
    this.#tell(0, 0);
  }

  #point({ clientX, clientY }: PointerEvent): void {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    const row = Math.floor(((clientY - top) / height) * this.#slice.height);
    this.#tell(row, Math.floor(((clientX - left) / width) * this.#slice.width));
  }

  #press(event: KeyboardEvent): void {
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (move === undefined || event.shiftKey) return;
    this.#tell(this.#at[0] + move[0], this.#at[1] + move[1]);
    event.preventDefault();
    event.stopPropagation();
  }

  /** Tells of an element. */
  #tell(row: number, column: number): void {
    const { width, height, values } = this.#slice;
    this.#at = [Math.min(height - 1, Math.max(0, row)), Math.min(width - 1, Math.max(0, column))];
    const at = this.#at[0] * width + this.#at[1];
    const value = values[at];
    const place = placeOf(this.#slice, this.#choice, at).join(", ");
    this.#told.textContent = value === undefined ? "" : `[${place}] = ${short(value)}`;
  }
}

/** Fills a canvas, a point for each colour. */
function paint(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  colour: (at: number) => Rgb | undefined,
): void {
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const image = context.createImageData(width, height);
  for (let at = 0; at < width * height; at++) {
    const rgb = colour(at);
    if (rgb !== undefined) image.data.set([...rgb, 255], 4 * at);
  }
  context.putImageData(image, 0, 0);
}

function labelled(text: string, control: HTMLElement): HTMLElement {
  const res = part("label", "picker");
  res.append(`${text} `, control);
  return res;
}

function short(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(5))) : String(value);
}
