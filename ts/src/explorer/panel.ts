/**
 * The side panel: what there is to tell of an item, or of the program. All that comes out of a file is put in as text.
 *
 * @module
 */
import { button } from "./dom.ts";
import { detailsOf, overviewOf, type Row, type Section } from "./details.ts";
import type { GraphModel, Item } from "./model.ts";
import type { Elements } from "./run.ts";
import { sliceView } from "./sliceView.ts";
import { elementsOf, type Statistics, statisticsOfElements, statisticsRows } from "./statistics.ts";

/** What the panel asks for, and what it is told. */
export interface PanelSource {
  readonly select: (item: number) => void;
  /** How an item differs from the one that it is matched with. */
  readonly difference: (item: number) => string | undefined;
  /** What a run told of the value of an item, and how long it took. */
  readonly measured: (item: number) => MeasuredItem | undefined;
}

/** What a run told of an item. */
export interface MeasuredItem {
  readonly rows: readonly Row[];
  readonly statistics?: Statistics;
  /** The elements of its value; a function where another run has to give them. */
  readonly elements?: Elements | (() => Elements | undefined);
}

/** A tensor of more elements is counted when that is asked for. */
const MOST_AT_ONCE = 1_000_000;

/** Shows an item in the panel; -1 is the program. */
export function showDetails(panel: HTMLElement, model: GraphModel, item: number, source: PanelSource): void {
  const sections = item < 0 ? overviewOf(model) : detailsOf(model, item);
  const difference = item < 0 ? undefined : source.difference(item);
  if (difference !== undefined)
    sections.unshift({ title: "Comparison", rows: [{ name: "difference", value: difference }] });
  const parts = sections.map((it) => sectionOf(it, model, source));
  const measured = item < 0 ? undefined : source.measured(item);
  if (measured !== undefined) {
    const rows = [...measured.rows, ...statisticsOfRun(measured.statistics)];
    const section = sectionOf({ title: "Value of the run", rows }, model, source);
    if (measured.statistics !== undefined) section.append(...histogramOf(measured.statistics));
    const { elements } = measured;
    const what = model.items[item]?.title ?? "";
    if (typeof elements !== "function") section.append(...imageOf(elements, what));
    else {
      const show = button("Run again for the image", () => {
        const [view] = imageOf(elements(), what);
        show.replaceWith(...(view === undefined ? [] : [view]));
        // The button that had the keyboard is gone.
        (view?.querySelector("canvas") ?? panel).focus();
      });
      section.append(show);
    }
    parts.splice(1, 0, section);
  }
  const tensor = item < 0 ? undefined : model.tensor(item);
  if (tensor !== undefined) {
    const section = document.createElement("section");
    const count = (): void => {
      const data = elementsOf(tensor);
      if (data === undefined) return;
      const statistics = statisticsOfElements(data);
      const shown = sectionOf({ title: "Elements", rows: statisticsOfRun(statistics) }, model, source);
      shown.append(
        ...histogramOf(statistics),
        ...imageOf({ shape: tensor.shape, data }, model.items[item]?.title ?? ""),
      );
      section.replaceWith(shown);
    };
    parts.splice(1, 0, section);
    if (tensor.numel() <= MOST_AT_ONCE) queueMicrotask(count);
    else section.append(button(`Statistics of ${tensor.numel().toLocaleString("en")} elements`, count));
  }
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

/** A slice of a value as an image; none of a single number. */
function imageOf(elements: Elements | undefined, what: string): HTMLElement[] {
  const view = elements && sliceView(elements, what);
  return view === undefined ? [] : [view];
}

function statisticsOfRun(statistics: Statistics | undefined): Row[] {
  return statistics === undefined ? [] : statisticsRows(statistics).map(([name, value]) => ({ name, value }));
}

function sectionOf({ title, rows, text }: Section, model: GraphModel, source: PanelSource): HTMLElement {
  const section = document.createElement("section");
  const heading = document.createElement("h3");
  heading.textContent = title;
  section.append(heading);
  const named = rows.filter((it) => it.name !== "");
  if (named.length > 0) {
    const list = document.createElement("dl");
    for (const row of named) {
      const name = document.createElement("dt");
      name.textContent = row.name;
      const value = document.createElement("dd");
      value.append(...linksOf(row, model, source), row.value);
      list.append(name, value);
    }
    section.append(list);
  }
  for (const row of rows.filter((it) => it.name === "")) {
    const line = document.createElement("p");
    line.append(...linksOf(row, model, source), row.value);
    section.append(line);
  }
  if (text !== undefined) {
    const block = document.createElement("pre");
    block.tabIndex = 0;
    block.textContent = text;
    section.append(block);
  }
  return section;
}

function linksOf({ links = [] }: Row, model: GraphModel, { select }: PanelSource): Node[] {
  return links.flatMap((it) => {
    const { node, title, isWeight } = model.items[it] as Item;
    return [button(isWeight ? title : (node?.name ?? title), () => select(it)), document.createTextNode(" ")];
  });
}

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 60;

/** The histogram; none where no element is finite. */
function histogramOf({ histogram, min, max }: Statistics): SVGElement[] {
  if (Number.isNaN(min)) return [];
  const svg = document.createElementNS(SVG, "svg");
  const width = histogram.length * 8;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Histogram from ${min.toPrecision(4)} to ${max.toPrecision(4)}`);
  svg.setAttribute("class", "histogram");
  const most = Math.max(1, ...histogram);
  for (const [at, n] of histogram.entries()) {
    const bar = document.createElementNS(SVG, "rect");
    // What is there is seen, however little of it there is.
    const height = n === 0 ? 0 : Math.max(1, (n / most) * HEIGHT);
    for (const [name, value] of Object.entries({ x: 8 * at, y: HEIGHT - height, width: 7, height })) {
      bar.setAttribute(name, String(value));
    }
    svg.append(bar);
  }
  return [svg];
}
