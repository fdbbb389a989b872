/**
 * What the element consists of: its bar, its canvas, its panel and its line of status.
 *
 * @module
 */
import { button, choice, part } from "./dom.ts";
import { STYLE } from "./style.ts";

/** The parts of the element. */
export interface Controls {
  readonly search: HTMLInputElement;
  readonly count: HTMLElement;
  readonly fit: HTMLButtonElement;
  readonly openAll: HTMLButtonElement;
  readonly closeAll: HTMLButtonElement;
  readonly weights: HTMLButtonElement;
  /** What a run is given: `example`, `random` or `given`. */
  readonly inputs: HTMLSelectElement;
  readonly run: HTMLButtonElement;
  /** Whether the plan is shown in place of the program. */
  readonly plan: HTMLButtonElement;
  readonly edit: HTMLButtonElement;
  /** What the colour of boxes tells: `none`, or a `Heat`; hidden before a run. */
  readonly heat: HTMLSelectElement;
  /** Which of two programs is shown; hidden where there is one. */
  readonly other: HTMLButtonElement;
  readonly difference: HTMLButtonElement;
  readonly svg: HTMLButtonElement;
  readonly png: HTMLButtonElement;
  readonly canvas: HTMLCanvasElement;
  readonly tree: HTMLElement;
  /** Beside the picture: inputs and panel. */
  readonly side: HTMLElement;
  /** Where inputs are chosen; hidden where none are to be. */
  readonly given: HTMLFormElement;
  readonly panel: HTMLElement;
  /** Where the program is edited; hidden until that is asked for. */
  readonly console: HTMLElement;
  readonly status: HTMLElement;
  /** Lets people use what needs something that is open. */
  enable(): void;
}

/** What a run can be given. */
const INPUTS = { example: "Example inputs", random: "Random inputs", given: "Chosen inputs…" };

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
    fit: named("Fit", "Show the whole picture (f)"),
    openAll: named("Open all", "Open all modules"),
    closeAll: named("Close all", "Close all modules"),
    weights: named("Weights", "Show parameters, buffers and constants"),
    other: named("Show the other", "Show the other program"),
    difference: named("Next difference", "Select the next node that differs (n)"),
    plan: named("Plan", "Show the steps that the program is compiled to"),
    edit: named("Edit", "Edit the program by commands, passes and patterns (e)"),
    run: named("Run", "Run the program node by node: times, statistics, NaN"),
    svg: named("SVG", "Save the picture as SVG"),
    png: named("PNG", "Save the picture as PNG"),
  };
  for (const it of [buttons.weights, buttons.plan, buttons.edit]) it.ariaPressed = "false";
  const inputs = chosen("inputs", "Inputs of a run", INPUTS);
  const heat = chosen("heat", "What the colour of boxes tells", HEATS);
  const canvas = part("canvas", "canvas");
  canvas.ariaHidden = "true";
  const tree = part("div", "tree");
  tree.setAttribute("role", "tree");
  tree.tabIndex = 0;
  tree.ariaLabel =
    "Graph. Arrow up and down: boxes in the order of the program. Right and left: open and close. u: first user. i: first input.";
  tree.hidden = true;
  const side = part("div", "side");
  const given = part("form", "given");
  given.ariaLabel = "Inputs";
  given.hidden = true;
  const panel = part("div", "panel");
  panel.setAttribute("role", "region");
  panel.ariaLabel = "Details";
  panel.tabIndex = 0;
  const console = part("div", "console");
  console.setAttribute("role", "region");
  console.ariaLabel = "Edit";
  console.hidden = true;
  const status = part("p", "status");
  status.setAttribute("role", "status");

  const { fit, openAll, closeAll, weights, other, difference, plan, edit, run, svg, png } = buttons;
  const grow = part("span", "grow");
  bar.append(
    search,
    count,
    grow,
    other,
    difference,
    fit,
    openAll,
    closeAll,
    weights,
    inputs,
    run,
    heat,
    plan,
    edit,
    svg,
    png,
  );
  other.hidden = difference.hidden = heat.hidden = true;
  stage.append(canvas, tree);
  side.append(given, panel);
  whole.append(bar, stage, side, console, status);
  root.append(whole);
  const all = [search, inputs, heat, ...Object.values(buttons)];
  const enable = (): void => {
    for (const it of all) it.disabled = false;
  };
  for (const it of all) it.disabled = true;
  return { search, count, inputs, heat, ...buttons, canvas, tree, side, given, panel, console, status, enable };
}

function named(text: string, about: string): HTMLButtonElement {
  const res = button(text, undefined, about);
  res.className = text.toLowerCase().replaceAll(" ", "-");
  return res;
}

function chosen(className: string, about: string, options: Readonly<Record<string, string>>): HTMLSelectElement {
  const res = choice(about, options);
  res.className = className;
  return res;
}
