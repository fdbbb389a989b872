/**
 * What the element consists of: its bar, its canvas, its panel and its line of status.
 *
 * @module
 */
import { STYLE } from "./style.ts";

/** The parts of the element. */
export interface Controls {
  readonly search: HTMLInputElement;
  readonly count: HTMLElement;
  readonly fit: HTMLButtonElement;
  readonly openAll: HTMLButtonElement;
  readonly closeAll: HTMLButtonElement;
  readonly weights: HTMLButtonElement;
  /** What a run is given: `example`, `random` or `file`. */
  readonly inputs: HTMLSelectElement;
  readonly run: HTMLButtonElement;
  /** What the colour of boxes tells: `none`, or a `Heat`; hidden before a run. */
  readonly heat: HTMLSelectElement;
  /** Which of two programs is shown; hidden where there is one. */
  readonly other: HTMLButtonElement;
  readonly difference: HTMLButtonElement;
  readonly svg: HTMLButtonElement;
  readonly png: HTMLButtonElement;
  readonly canvas: HTMLCanvasElement;
  readonly tree: HTMLElement;
  readonly panel: HTMLElement;
  readonly status: HTMLElement;
  /** Lets people use what needs something that is open. */
  enable(): void;
}

/** What a run can be given. */
const INPUTS = { example: "Example inputs", random: "Random inputs", file: "Inputs of a file…" };

/** What the colour of boxes can tell. */
const HEATS = { none: "No heat", nodes: "Time of nodes", plan: "Time in the plan", bytes: "Bytes", flops: "FLOPs" };

/** Builds the parts in a shadow root. */
export function controls(root: ShadowRoot): Controls {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];

  const whole = part("div", "all");
  const bar = part("div", "bar");
  const stage = part("div", "stage");
  const search = part("input", "search");
  search.type = "search";
  search.placeholder = "Search ( / )";
  search.ariaLabel = "Search by name, op, target or shape";
  const count = part("span", "count");
  count.setAttribute("role", "status");
  const buttons = {
    fit: button("Fit", "Show the whole picture (f)"),
    openAll: button("Open all", "Open all modules"),
    closeAll: button("Close all", "Close all modules"),
    weights: button("Weights", "Show parameters, buffers and constants"),
    other: button("Show the other", "Show the other program"),
    difference: button("Next difference", "Select the next node that differs (n)"),
    run: button("Run", "Run the program node by node: times, statistics, NaN"),
    svg: button("SVG", "Save the picture as SVG"),
    png: button("PNG", "Save the picture as PNG"),
  };
  buttons.weights.ariaPressed = "false";
  const inputs = choice("inputs", "Inputs of a run", INPUTS);
  const heat = choice("heat", "What the colour of boxes tells", HEATS);
  const canvas = part("canvas", "canvas");
  canvas.ariaHidden = "true";
  const tree = part("div", "tree");
  tree.setAttribute("role", "tree");
  tree.tabIndex = 0;
  tree.ariaLabel =
    "Graph. Arrow up and down: boxes in the order of the program. Right and left: open and close. u: first user. i: first input.";
  tree.hidden = true;
  const panel = part("div", "panel");
  panel.setAttribute("role", "region");
  panel.ariaLabel = "Details";
  panel.tabIndex = 0;
  const status = part("p", "status");
  status.setAttribute("role", "status");

  const { fit, openAll, closeAll, weights, other, difference, run, svg, png } = buttons;
  const grow = part("span", "grow");
  bar.append(search, count, grow, other, difference, fit, openAll, closeAll, weights, inputs, run, heat, svg, png);
  other.hidden = difference.hidden = heat.hidden = true;
  stage.append(canvas, tree);
  whole.append(bar, stage, panel, status);
  root.append(whole);
  const all = [search, inputs, heat, ...Object.values(buttons)];
  const enable = (): void => {
    for (const it of all) it.disabled = false;
  };
  for (const it of all) it.disabled = true;
  return { search, count, inputs, heat, ...buttons, canvas, tree, panel, status, enable };
}

function part<Name extends keyof HTMLElementTagNameMap>(name: Name, className: string): HTMLElementTagNameMap[Name] {
  const res = document.createElement(name);
  res.className = className;
  return res;
}

function button(text: string, about: string): HTMLButtonElement {
  const res = part("button", text.toLowerCase().replaceAll(" ", "-"));
  res.type = "button";
  res.textContent = text;
  res.title = about;
  return res;
}

function choice(name: string, about: string, options: Readonly<Record<string, string>>): HTMLSelectElement {
  const res = part("select", name);
  res.ariaLabel = about;
  for (const [value, text] of Object.entries(options)) res.append(new Option(text, value));
  return res;
}
