/**
 * The element `<tracefx-graph>`.
 *
 * @module
 */
import { load, type ProgramSource } from "../export/load.ts";
import { fxError, FxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { Console } from "./console.ts";
import { controls, type Controls } from "./controls.ts";
import { compareModels, firstParting, type ModelDiff, type Parting } from "./diff.ts";
import { save } from "./files.ts";
import { type Marks, NO_MARKS, type Picture, pictureOf } from "./drawing.ts";
import { Layouter } from "./layouter.ts";
import { LastRun } from "./lastRun.ts";
import { pressKey } from "./keys.ts";
import { type Heat, stepHeat } from "./measured.ts";
import { type Explorable, GraphModel, isExplorable, type Item } from "./model.ts";
import { Outline } from "./outline.ts";
import { showDetails } from "./panel.ts";
import { linkOf, sideOfLink, stateOfLink } from "./permalink.ts";
import { History } from "./history.ts";
import { InputChoice, takeDropped } from "./inputChoice.ts";
import { exampleLeaves, exampleOf, profileProgram, type ProgramRun, runProgram, runPrograms } from "./run.ts";
import { planGraph } from "./planGraph.ts";
import { opening, sceneOf } from "./scene.ts";
import { search } from "./search.ts";
import { svgOf } from "./svg.ts";
import { DARK, LIGHT, type Theme } from "./theme.ts";
import { pngOf, Viewer } from "./viewer.ts";

/** What the event `tracefx-select` tells. */
export interface SelectDetail {
  /** The item that is selected; undefined for none. */
  readonly item: Item | undefined;
}

/** Two programs beside each other. */
interface Comparison {
  readonly before: GraphModel;
  readonly after: GraphModel;
  readonly diff: ModelDiff;
  /** Whether the second of them is shown. */
  readonly isAfter: boolean;
}

/** What is shown: one program, or one of two. */
interface Shown {
  readonly model: GraphModel;
  readonly comparison: Comparison | undefined;
}

/** How many boxes a program is opened with at most, unless its outermost modules are more. */
const ROOM = 160;
/** How many boxes there may be at once: what is more is not opened. */
const MOST_BOXES = 30_000;
/** How long the permalink waits for more of what changes it. */
const LINK_AFTER = 150;

/** How far values may be apart, as a share of the largest, before they are said to part. */
const TOLERANCE = 1e-3;

/** Outside of browsers there is no such class, and importing the explorer is no error. */
const Base = globalThis.HTMLElement ?? (Object as unknown as typeof HTMLElement);

/**
 * A program or graph module as a picture that people explore: `<tracefx-graph src="model.pt2"></tracefx-graph>`.
 *
 * Its attributes are `src`, an address of a `.pt2` or `.fxg` file; `theme`, `light` or `dark` in place of what the page has; and
 * `permalink`, with which the address of the page keeps what is open, selected and seen. It fires `tracefx-open`, `tracefx-select` with a
 * {@link SelectDetail}, and `tracefx-error` with an `FxError` as its detail.
 *
 * @example
 * ```ts
 * import "tracefx/explorer";
 *
 * const element = document.createElement("tracefx-graph");
 * document.body.append(element);
 * await element.open(await load("model.pt2"));
 * ```
 */
export class TracefxGraph extends Base {
  /** The attributes that are watched. */
  static readonly observedAttributes: readonly string[] = ["src", "compare", "theme"];

  #controls: Controls | undefined;
  #viewer: Viewer | undefined;
  #outline: Outline | undefined;
  #layouter: Layouter | undefined;
  #model: GraphModel | undefined;
  #open = new Set<number>();
  #selected = -1;
  #showsWeights = false;
  #found: readonly number[] = [];
  #marks: Marks = NO_MARKS;
  #lastRun: LastRun | undefined;
  #comparison: Comparison | undefined;
  #inputs: InputChoice | undefined;
  /** What was shown before each edit. */
  readonly #history = new History<Shown>();
  #console: Console | undefined;
  /** What is shown again when its plan is not. */
  #planned: (Shown & { readonly lastRun: LastRun | undefined }) | undefined;
  /** Counts what was opened, and what was laid out, so that the last one is shown. */
  #nOpened = 0;
  #nShown = 0;
  /** Whether the picture is not, or not yet, of what is open. */
  #isStale = false;
  /** The programs that the element has read from files. */
  readonly #loaded = new Set<Explorable>();
  /** What the address of the page said when the first program was opened, until it is followed. */
  #address = "";
  #linkTimer: ReturnType<typeof setTimeout> | undefined;
  #watches: AbortController | undefined;

  /** What is shown; undefined before something is opened. */
  get model(): GraphModel | undefined {
    return this.#model;
  }

  /** The item that is selected. */
  get selection(): Item | undefined {
    return this.#model?.items[this.#selected];
  }

  /** How long the last drawing took, in milliseconds. */
  get drawTime(): number {
    return this.#viewer?.drawTime ?? 0;
  }

  /**
   * Opens a program or graph module, or the file of a program. A file that is refused throws, and what was open before stays. What the element
   * has read from a file itself is disposed of when something else is opened. Of several that are opened at once the last one is shown.
   */
  async open(source: Explorable | ProgramSource): Promise<void> {
    const turn = ++this.#nOpened;
    this.#tell("Opening…");
    try {
      const model = await this.#read(source, turn);
      if (model === undefined) return;
      this.#history.clear();
      await this.#show(model);
    } catch (error) {
      if (turn === this.#nOpened) this.#tell(error instanceof FxError ? error.message : String(error));
      throw error;
    }
    if (turn === this.#nOpened) this.dispatchEvent(new CustomEvent("tracefx-open"));
  }

  /**
   * Opens another program beside the one that is open, and marks what differs: what one of them has alone, and what has another operator,
   * other arguments or another value. The second one is shown.
   */
  async compare(source: Explorable | ProgramSource): Promise<void> {
    const before = this.#comparison?.before ?? this.#planned?.model ?? this.#opened("compare");
    const turn = ++this.#nOpened;
    const after = await this.#read(source, turn);
    if (after === undefined) return;
    this.#history.clear();
    await this.#show(after, { before, after, diff: compareModels(before, after), isAfter: true });
    if (turn !== this.#nOpened) return;
    const n = this.#differences().length;
    this.#tell(n === 0 ? "no node differs" : `${n} nodes differ`);
  }

  /** The model of what is opened; undefined where something else was opened meanwhile. */
  async #read(source: Explorable | ProgramSource, turn: number): Promise<GraphModel | undefined> {
    if (isExplorable(source)) return new GraphModel(source);
    const program = await load(source);
    if (turn !== this.#nOpened) {
      program.dispose();
      return undefined;
    }
    this.#loaded.add(program);
    return new GraphModel(program);
  }

  /**
   * Runs the program node by node on inputs for its placeholders, or without any on those that it was exported with, and shows how long
   * each node took; the panel has the statistics of its value. Two programs that are compared are run both on the same inputs, and the
   * first node whose values part is selected.
   */
  run(inputs?: readonly unknown[]): ProgramRun {
    const model = this.#opened("run");
    const comparison = this.#comparison;
    const runs = comparison && runPrograms(programOf(comparison.before), programOf(comparison.after), inputs);
    const run = runs?.[comparison?.isAfter === true ? 1 : 0] ?? runProgram(programOf(model), inputs);
    // What is computed later is of the same inputs, which need not be those of the program that is shown.
    const pair = comparison && exampleOf(programOf(comparison.before), programOf(comparison.after));
    const given = inputs ?? (pair && exampleLeaves(pair));
    this.#lastRun = new LastRun(model, run, given);
    if (this.#controls !== undefined) this.#controls.heat.hidden = false;
    this.#heat("nodes");
    let { told, found } = this.#lastRun.summary();
    if (comparison !== undefined && runs !== undefined) {
      const { before, after, diff, isAfter } = comparison;
      const parting = firstParting(before, runs[0], after, runs[1], diff, TOLERANCE);
      told += `; ${partingText(before, parting)}`;
      if (parting !== undefined) found = isAfter ? diff.matches.get(parting.item) : parting.item;
    }
    this.#tell(told);
    void this.#choose(found ?? this.#selected);
    return run;
  }

  /**
   * Edits what is shown by a command of the console, and tells what was done. The result is shown beside what was there before; the programs
   * and modules themselves stay as they are, and share their tensors.
   *
   * @example
   * ```ts
   * await element.edit("pass fuseBatchNorm");
   * await element.edit("replace relu(x) with clamp_min(x, 0)");
   * const { source } = element.model; // the program that was made
   * ```
   */
  async edit(command: string): Promise<string> {
    checkGiven("edit", typeof command === "string", "a command, such as `pass CSEPass`");
    const { runCommand } = await import("./commands.ts");
    const before = this.#opened("edit");
    if (this.#planned !== undefined)
      throw fxError("InvalidOption", "a plan is not edited", { help: "show the program" });
    const { source, told } = runCommand(command, before.source);
    if (source !== before.source) await this.#edited(source);
    return told;
  }

  /** Shows what was there before the last edit; whether there was one. */
  async undo(): Promise<boolean> {
    return await this.#travel((now) => this.#history.undo(now));
  }

  /** Shows what the edit made that was undone last; whether there was one. */
  async redo(): Promise<boolean> {
    return await this.#travel((now) => this.#history.redo(now));
  }

  /** Selects an item by its id, or a node by its name; what it is in is opened. An empty id selects nothing. */
  async select(id: string): Promise<void> {
    checkGiven("select", typeof id === "string", "the id of an item");
    if (id === "") return await this.#choose(-1);
    const model = this.#opened("select");
    const found = model.items.find((it) => it.id === id);
    if (found === undefined)
      throw fxError("AttributeMissing", `there is no item \`${id}\``, { help: "model.items has all" });
    await this.#choose(found.index);
  }

  /** What is open, selected and seen, as text: what the permalink has behind its `#`. */
  get state(): string {
    if (this.#model === undefined || this.#viewer === undefined) return "";
    const { x, y, scale } = this.#viewer.camera;
    return linkOf({
      open: this.#open,
      selected: this.#selected,
      weights: this.#showsWeights,
      query: this.#controls?.search.value ?? "",
      side: this.#comparison && (this.#comparison.isAfter ? "second" : "first"),
      camera: [x, y, scale],
    });
  }

  /** Opens, selects and shows what a text of {@link TracefxGraph.state} says. */
  async restore(state: string): Promise<void> {
    const side = sideOfLink(state);
    if (side !== undefined && this.#comparison?.isAfter === (side === "first")) await this.#showOther();
    const told = stateOfLink(state, this.#opened("restore"));
    if (told === undefined || this.#viewer === undefined || this.#controls === undefined) return;
    this.#open = new Set(told.open);
    this.#showsWeights = told.weights;
    this.#controls.weights.ariaPressed = String(told.weights);
    this.#controls.search.value = told.query;
    await this.#lay();
    await this.#search(told.query, false);
    await this.#choose(told.selected);
    if (told.camera !== undefined)
      [this.#viewer.camera] = [{ x: told.camera[0], y: told.camera[1], scale: told.camera[2] }];
  }

  /** The picture as it is open now, as an SVG document. */
  toSvg(): string {
    return svgOf(this.#picture("toSvg"), this.#theme(), { ...this.#marks, selected: -1 });
  }

  /** The picture as it is open now, as a PNG. */
  async toPng(): Promise<Blob> {
    return await pngOf(this.#picture("toPng"), this.#theme(), { ...this.#marks, selected: -1 });
  }

  /** For the page. */
  connectedCallback(): void {
    this.#watches = new AbortController();
    const { signal } = this.#watches;
    if (this.#controls === undefined) this.#build();
    this.#layouter = new Layouter();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint(), { signal });
    const resized = new ResizeObserver(() => this.#viewer?.redraw());
    resized.observe(this);
    signal.addEventListener("abort", () => resized.disconnect());
    addEventListener("hashchange", () => this.#followLink(), { signal });
    this.#paint();
    const src = this.getAttribute("src");
    if (src !== null && this.#model === undefined) this.#openAddress(src);
    // What was opened or changed while the element was in no page has no picture yet.
    else if (this.#model !== undefined && this.#isStale) {
      this.#prepare();
      void this.#layAnew();
    }
  }

  /** For the page. */
  disconnectedCallback(): void {
    this.#watches?.abort();
    this.#layouter?.[Symbol.dispose]();
    this.#layouter = undefined;
    clearTimeout(this.#linkTimer);
  }

  /** For the page. */
  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (before === value || this.#controls === undefined) return;
    if (name === "theme") this.#paint();
    else if (value === null || !this.isConnected) return;
    else if (name === "src") this.#openAddress(value);
    else if (this.#model !== undefined) this.#compareAddress(value).catch((error: unknown) => this.#fail(error));
  }

  #openAddress(src: string): void {
    const other = this.getAttribute("compare");
    const opened = this.open(new URL(src, document.baseURI));
    const turn = this.#nOpened;
    // Something else that was opened meanwhile is not compared with.
    const compared = opened.then(() =>
      other === null || turn !== this.#nOpened ? undefined : this.#compareAddress(other),
    );
    compared.catch((error: unknown) => this.#fail(error));
  }

  #compareAddress(other: string): Promise<void> {
    return this.compare(new URL(other, document.baseURI));
  }

  /** Tells of what was refused. */
  #fail(error: unknown): void {
    this.#tell(error instanceof FxError ? error.message : String(error));
    this.dispatchEvent(new CustomEvent("tracefx-error", { detail: error }));
  }

  /** Tells of what is refused later. */
  #try(promised: Promise<unknown>): void {
    promised.catch((error: unknown) => this.#fail(error));
  }

  #build(): void {
    const root = this.attachShadow({ mode: "open" });
    const it = controls(root);
    this.#controls = it;
    this.#viewer = new Viewer(it.canvas, {
      select: (box) => {
        it.tree.focus({ preventScroll: true });
        void this.#choose(this.#itemOf(box), false);
      },
      toggle: (box) => void this.#toggle(this.#itemOf(box)),
      move: () => this.#link(),
    });
    this.#outline = new Outline(it.tree, {
      select: (item) => void this.#choose(item),
      toggle: (item) => void this.#toggle(item),
      colourOf: (item) => this.#colourOf(item),
    });
    const keys = {
      search: () => it.search.focus(),
      nextDifference: () => void this.#nextDifference(),
      edit: () => this.#try(this.#toggleConsole()),
      clear: () => void this.#choose(-1),
    };
    const viewer = this.#viewer;
    root.addEventListener("keydown", (event) => pressKey(event as KeyboardEvent, viewer, keys));
    it.search.addEventListener("input", () => void this.#search(it.search.value));
    it.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.#step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") it.tree.focus();
      else return;
      event.preventDefault();
    });
    it.fit.addEventListener("click", () => this.#viewer?.fit());
    it.openAll.addEventListener("click", () => void this.#openAll());
    it.closeAll.addEventListener("click", () => {
      this.#open.clear();
      void this.#layAnew();
    });
    it.weights.addEventListener("click", () => {
      this.#showsWeights = !this.#showsWeights;
      it.weights.ariaPressed = String(this.#showsWeights);
      void this.#lay();
    });
    it.run.addEventListener("click", () => this.#try(this.#runChosen()));
    const shown = (): (Explorable | undefined)[] => {
      const { before, after } = this.#comparison ?? {};
      return [before?.source ?? this.#model?.source, after?.source];
    };
    const inputs = new InputChoice(it, shown, (error) => this.#fail(error));
    this.#inputs = inputs;
    takeDropped(this, it.side, (files) => this.#try(inputs.take(files)));
    it.plan.addEventListener("click", () => this.#try(this.#togglePlan()));
    it.edit.addEventListener("click", () => this.#try(this.#toggleConsole()));
    it.heat.addEventListener("change", () => {
      try {
        this.#heat(it.heat.value as Heat | "none");
      } catch (error) {
        this.#fail(error);
      }
    });
    it.other.addEventListener("click", () => void this.#showOther());
    it.difference.addEventListener("click", () => void this.#nextDifference());
    it.svg.addEventListener("click", () => save("graph.svg", new Blob([this.toSvg()], { type: "image/svg+xml" })));
    it.png.addEventListener("click", () => void this.toPng().then((blob) => save("graph.png", blob)));
  }

  /** Shows something else. What the new model has too stays open where `keeps` says so, and the picture stays where it is. */
  async #show(model: GraphModel, comparison?: Comparison, keeps = false): Promise<void> {
    const before = this.#model;
    // The address of the page is about what is opened first, or about the first comparison.
    if (this.#model === undefined && this.hasAttribute("permalink")) this.#address = location.hash;
    const isOfThis = sideOfLink(this.#address) === undefined || comparison !== undefined;
    const hash = isOfThis ? this.#address : "";
    if (isOfThis) this.#address = "";
    this.#model = model;
    this.#comparison = comparison;
    this.#selected = -1;
    this.#found = [];
    this.#lastRun = undefined;
    this.#planned = undefined;
    const { diff, isAfter } = comparison ?? {};
    this.#marks = { ...NO_MARKS, differences: (isAfter === true ? diff?.after : diff?.before) ?? new Map() };
    this.#open = keeps && before !== undefined ? sameItems(before, this.#open, model) : opening(model, ROOM);
    this.#prepare();
    if (keeps) return await this.#lay();
    if (stateOfLink(hash, model) !== undefined) return await this.restore(hash);
    await this.#layAnew();
  }

  /** Disposes of the programs that the element has read and shows no more. */
  #disposeOthers(): void {
    const current = { model: this.#model, comparison: this.#comparison };
    const states = [current, ...this.#history.states, ...(this.#planned === undefined ? [] : [this.#planned])];
    const models = states.flatMap(({ model, comparison }) => [model, comparison?.before, comparison?.after]);
    const shown = models.map((it) => it?.source);
    for (const source of this.#loaded) {
      if (shown.includes(source)) continue;
      this.#loaded.delete(source);
      if (source instanceof ExportedProgram) source.dispose();
    }
  }

  /** Shows in the bar and in the panel what there is for what is open. */
  #prepare(): void {
    if (this.#controls === undefined || this.#model === undefined) return;
    const { other, difference, heat, run, inputs, plan, edit } = this.#controls;
    other.hidden = difference.hidden = this.#comparison === undefined;
    other.textContent = this.#comparison?.isAfter === true ? "Show the first" : "Show the second";
    heat.hidden = this.#lastRun === undefined;
    const isProgram = this.#model.source instanceof ExportedProgram;
    run.hidden = inputs.hidden = !isProgram;
    plan.hidden = !isProgram && this.#planned === undefined;
    plan.ariaPressed = String(this.#planned !== undefined);
    edit.hidden = this.#planned !== undefined;
    if (edit.hidden) this.#controls.console.hidden = true;
    edit.ariaPressed = String(!this.#controls.console.hidden);
    this.#inputs?.show();
    this.#controls.enable();
    this.#panel();
  }

  /** Lays out what is open now. The item that was opened or closed stays where it is on the screen. */
  async #lay(anchor = -1): Promise<void> {
    const turn = ++this.#nShown;
    this.#isStale = true;
    const [model, layouter, viewer] = [this.#model, this.#layouter, this.#viewer];
    if (model === undefined || layouter === undefined || viewer === undefined) return;
    const scene = sceneOf(model, { open: this.#open, weights: this.#showsWeights });
    this.#tell("Laying out…");
    const layout = await layouter.layOut(scene.request);
    if (turn !== this.#nShown || layout === undefined) return;
    const before = viewer.picture?.scene.model === model ? viewer.picture.scene.boxOf[anchor] : undefined;
    const now = scene.boxOf[anchor];
    const stays = before === undefined || now === undefined ? undefined : { before, now };
    this.#isStale = false;
    viewer.show(pictureOf(scene, layout), stays);
    this.#disposeOthers();
    this.#outline?.show(scene);
    this.#outline?.activate(this.#selected);
    this.#mark();
    this.#tell(`${model.nNodes} nodes, ${scene.items.length} boxes`);
    this.#link();
  }

  /** The same, and shows the upper end of the picture. */
  async #layAnew(): Promise<void> {
    const model = this.#model;
    await this.#lay();
    if (model === this.#model && !this.#isStale) this.#viewer?.begin();
  }

  async #toggle(item: number): Promise<void> {
    if (this.#model === undefined || item < 0 || this.#model.children(item).length === 0) return;
    if (!this.#open.delete(item)) this.#open.add(item);
    // What is selected inside of what closes is selected no more.
    if (this.#selected >= 0 && !this.#open.has(item) && this.#model.around(this.#selected).includes(item)) {
      await this.#choose(item, false);
    }
    await this.#lay(item);
  }

  async #openAll(): Promise<void> {
    const model = this.#opened("openAll");
    this.#open = opening(model, MOST_BOXES);
    await this.#layAnew();
  }

  /** Selects an item; -1 for none. What it is in is opened, and it is brought into view. */
  async #choose(item: number, reveals = true): Promise<void> {
    const { items = [] } = this.#model ?? {};
    this.#selected = items[item] === undefined ? -1 : item;
    if (this.#selected >= 0 && reveals) await this.#uncover(this.#selected);
    this.#outline?.activate(this.#selected);
    this.#mark();
    const box = this.#shown()?.scene.boxOf[this.#selected] ?? -1;
    if (box >= 0 && reveals) this.#viewer?.reveal(box);
    this.#panel();
    this.#link();
    this.dispatchEvent(new CustomEvent<SelectDetail>("tracefx-select", { detail: { item: this.selection } }));
  }

  /** Opens what an item is in. */
  async #uncover(item: number): Promise<void> {
    const model = this.#opened("select");
    const closed = model.around(item).filter((it) => !this.#open.has(it));
    const isHidden = (model.items[item] as Item).isWeight && !this.#showsWeights;
    if (closed.length === 0 && !isHidden) return;
    for (const it of closed) this.#open.add(it);
    if (isHidden) this.#showsWeights = true;
    if (this.#controls !== undefined) this.#controls.weights.ariaPressed = String(this.#showsWeights);
    await this.#lay(model.around(item)[0]);
  }

  /** Runs the program on what the bar says. */
  async #runChosen(): Promise<void> {
    const model = this.#opened("run");
    if (this.#controls === undefined) return;
    programOf(model);
    const given = await this.#inputs?.chosen();
    if (given === undefined || model !== this.#model) return;
    this.#tell("Running…");
    // The page shows that before the run, which it waits for.
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (model !== this.#model) return;
    this.run(given.inputs);
    this.#tell(`${this.#controls.status.textContent}; ${given.told}`);
  }

  /** Colours the boxes by what they take, or as before. What a plan takes is measured when that is asked for. */
  #heat(heat: Heat | "none"): void {
    if (this.#lastRun === undefined || this.#controls === undefined) return;
    this.#controls.heat.value = heat;
    const { shares, told } = heat === "none" ? { shares: NO_MARKS.heat } : this.#lastRun.heat(heat);
    if (told !== undefined) {
      this.#tell(told);
      this.#panel();
    }
    this.#marks = { ...this.#marks, heat: shares };
    this.#mark();
    this.#outline?.activate(this.#selected);
  }

  /** Shows the plan of the program, or the program again. */
  async #togglePlan(): Promise<void> {
    const planned = this.#planned;
    if (planned !== undefined) {
      await this.#show(planned.model, planned.comparison);
      if (this.#model !== planned.model) return;
      this.#lastRun = planned.lastRun;
      this.#prepare();
      return;
    }
    const [model, comparison, lastRun] = [this.#opened("plan"), this.#comparison, this.#lastRun];
    const program = programOf(model);
    const given = lastRun === undefined ? await this.#inputs?.chosen() : undefined;
    if (model !== this.#model) return;
    const report = lastRun === undefined ? profileProgram(program, given?.inputs) : lastRun.plan();
    const plan = new GraphModel(planGraph(program, report));
    const shown = this.#show(plan);
    this.#planned = { model, comparison, lastRun };
    this.#marks = { ...this.#marks, heat: stepHeat(plan) };
    this.#prepare();
    await shown;
    this.#tell(`a plan of ${report.steps.length} steps took ${report.milliseconds?.toFixed(3)} ms`);
  }

  /** Shows the console, which is loaded the first time, or hides it. */
  async #toggleConsole(): Promise<void> {
    const { console: region, edit } = this.#controls ?? {};
    if (region === undefined || edit === undefined || edit.hidden) return;
    const loaded = await import("./console.ts");
    this.#console ??= new loaded.Console(region, this);
    region.hidden = !region.hidden;
    edit.ariaPressed = String(!region.hidden);
    if (!region.hidden) this.#console.focus();
  }

  /** Shows what was made of what is shown, beside what was there before. */
  async #edited(source: Explorable): Promise<void> {
    const [model, comparison] = [this.#opened("edit"), this.#comparison];
    const made = new GraphModel(source);
    this.#history.note({ model, comparison });
    const { before = model, after = made, isAfter = true } = comparison ?? {};
    const pair = isAfter ? { before, after: made } : { before: made, after };
    ++this.#nOpened;
    await this.#show(made, { ...pair, diff: compareModels(pair.before, pair.after), isAfter }, true);
  }

  /** Goes back or forth in the history; whether there was something. */
  async #travel(step: (now: Shown) => Shown | undefined): Promise<boolean> {
    // A plan is no state of the program, which is shown again.
    const now = this.#planned ?? { model: this.#opened("undo"), comparison: this.#comparison };
    const state = step({ model: now.model, comparison: now.comparison });
    if (state === undefined) return false;
    ++this.#nOpened;
    await this.#show(state.model, state.comparison, true);
    return true;
  }

  async #showOther(): Promise<void> {
    if (this.#comparison === undefined) return;
    const comparison = { ...this.#comparison, isAfter: !this.#comparison.isAfter };
    await this.#show(comparison.isAfter ? comparison.after : comparison.before, comparison);
  }

  /** The nodes that differ from the other program's. */
  #differences(): number[] {
    const { items = [] } = this.#model ?? {};
    return [...this.#marks.differences.keys()].filter((it) => items[it]?.node !== undefined).toSorted((a, b) => a - b);
  }

  async #nextDifference(): Promise<void> {
    const all = this.#differences();
    const next = all.find((it) => it > this.#selected) ?? all[0];
    if (next !== undefined) await this.#choose(next);
  }

  async #search(text: string, reveals = true): Promise<void> {
    if (this.#model === undefined || this.#controls === undefined) return;
    this.#found = search(this.#model, text);
    // While somebody types, no weights are opened; the key enter does that.
    const { items } = this.#model;
    const first = this.#found.find((it) => this.#showsWeights || items[it]?.isWeight !== true);
    this.#controls.count.textContent = text.trim() === "" ? "" : `${this.#found.length} found`;
    this.#mark();
    if (first !== undefined && reveals) await this.#choose(first);
    this.#link();
  }

  /** Selects the next of what was found, or the one before. */
  async #step(by: 1 | -1): Promise<void> {
    const n = this.#found.length;
    if (n === 0) return;
    const at = this.#found.indexOf(this.#selected);
    await this.#choose(this.#found[(at + by + n) % n] as number);
  }

  #panel(): void {
    if (this.#model === undefined || this.#controls === undefined) return;
    showDetails(this.#controls.panel, this.#model, this.#selected, {
      select: (it) => void this.#choose(it),
      measured: (it) => this.#lastRun?.told(it),
      difference: (it) => this.#marks.differences.get(it),
    });
  }

  /** What the colour of a box tells, in words: how it differs, and its share of what is measured. */
  #colourOf(item: number): string {
    const { differences, heat } = this.#marks;
    const share = heat.get(item);
    const told = [differences.get(item) ?? "", share === undefined ? "" : `${(100 * share ** 2).toFixed(1)} %`];
    return told.filter((it) => it !== "").join(", ");
  }

  #mark(): void {
    const selected = this.#shown()?.scene.boxOf[this.#selected] ?? -1;
    this.#marks = { ...this.#marks, selected, found: new Set(this.#found) };
    // The picture of another program, until this one is laid out, keeps its own marks.
    if (this.#shown() !== undefined) this.#viewer?.mark(this.#marks);
  }

  #theme(): Theme {
    const wanted = this.getAttribute("theme");
    const isDark = wanted === null ? matchMedia("(prefers-color-scheme: dark)").matches : wanted === "dark";
    return isDark ? DARK : LIGHT;
  }

  #paint(): void {
    this.#viewer?.paint(this.#theme());
  }

  #tell(text: string): void {
    if (this.#controls !== undefined) this.#controls.status.textContent = text;
  }

  /** Writes the permalink, when nothing has changed for a moment. */
  #link(): void {
    // Outside of the page the element has no say in its address.
    if (!this.hasAttribute("permalink") || !this.isConnected || this.#planned !== undefined) return;
    clearTimeout(this.#linkTimer);
    this.#linkTimer = setTimeout(() => history.replaceState(history.state, "", `#${this.state}`), LINK_AFTER);
  }

  #followLink(): void {
    if (!this.hasAttribute("permalink") || this.#model === undefined || location.hash === `#${this.state}`) return;
    void this.restore(location.hash);
  }

  #itemOf(box: number): number {
    return box < 0 ? -1 : (this.#shown()?.scene.items[box] ?? -1);
  }

  /** The picture of what is open; undefined while it has none, though that of another program may still be seen. */
  #shown(): Picture | undefined {
    const picture = this.#viewer?.picture;
    return picture?.scene.model === this.#model ? picture : undefined;
  }

  #opened(what: string): GraphModel {
    if (this.#model !== undefined) return this.#model;
    throw fxError("InvalidOption", `${what} needs something that is open`, { help: "await element.open(program)" });
  }

  #picture(what: string): Picture {
    const picture = this.#shown();
    if (picture !== undefined) return picture;
    throw fxError("InvalidOption", `${what} needs a picture`, {
      help: "await element.open(program), with the element in a page",
    });
  }
}

/** The items of another model that have the ids of these. */
function sameItems(before: GraphModel, open: ReadonlySet<number>, model: GraphModel): Set<number> {
  const ids = new Set([...open].map((it) => before.items[it]?.id));
  return new Set(model.items.filter((it) => ids.has(it.id)).map((it) => it.index));
}

function partingText(before: GraphModel, parting: Parting | undefined): string {
  if (parting === undefined) return "the values agree";
  const { item, distance } = parting;
  return `the values part at ${before.items[item]?.node?.name ?? ""} (${(100 * distance).toPrecision(2)} %)`;
}

function programOf({ source }: GraphModel): ExportedProgram {
  if (source instanceof ExportedProgram) return source;
  throw fxError("InvalidOption", "a graph module has no signature to run it by", {
    help: "exportProgram(module, inputs)",
  });
}
