/**
 * The console: a line for commands, with completion, undo and redo, and what saves the program that was edited.
 *
 * @module
 */
import { FxError } from "../base/errors.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import { save as archiveOf } from "../export/save.ts";
import { saveGraphModule } from "../save/graphModule.ts";
import { completions } from "./commands.ts";
import { button, part } from "./dom.ts";
import { save } from "./files.ts";
import type { Explorable } from "./model.ts";

/** What is edited: the element. */
export interface Editable {
  readonly model: { readonly source: Explorable } | undefined;
  /** Runs a command, and tells what it did. */
  edit(command: string): Promise<string>;
  /** Goes back to before the last edit, or forth; whether there was one. */
  undo(): Promise<boolean>;
  redo(): Promise<boolean>;
}

/** How many lines the log keeps. */
const MOST_LINES = 100;

/** The line for commands, in a region of the element. */
export class Console {
  readonly #edited: Editable;
  readonly #line = part("input", "command");
  readonly #log = part("div", "log");
  readonly #offers = part("ul", "offers");
  readonly #commands: string[] = [];
  /** The command of before that is shown, and the offer that is chosen. */
  #recalled = 0;
  #chosen = -1;

  constructor(region: HTMLElement, edited: Editable) {
    this.#edited = edited;
    const form = document.createElement("form");
    const line = this.#line;
    Object.assign(line, { type: "text", spellcheck: false, autocomplete: "off" });
    line.placeholder = "pass fuseBatchNorm    replace relu(x) with clamp_min(x, 0)    erase NODE";
    line.ariaLabel = "Command";
    line.setAttribute("role", "combobox");
    line.setAttribute("aria-autocomplete", "list");
    line.setAttribute("aria-controls", "offers");
    line.ariaExpanded = "false";
    this.#offers.id = "offers";
    this.#offers.setAttribute("role", "listbox");
    this.#offers.ariaLabel = "Completions";
    this.#offers.hidden = true;
    this.#log.setAttribute("role", "log");
    this.#log.ariaLabel = "What commands did";
    this.#log.tabIndex = 0;
    this.#log.hidden = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#run();
    });
    line.addEventListener("input", () => this.#offer());
    line.addEventListener("keydown", (event) => this.#press(event));
    line.addEventListener("blur", () => this.#close());
    form.append(
      line,
      button("Undo", () => void this.#step("undo"), "Go back to before the last command"),
      button("Redo", () => void this.#step("redo"), "Do again what was undone"),
      button("Save .pt2", () => this.#save("pt2"), "Save the program for torch.export.load"),
      button("Save .fxg", () => this.#save("fxg"), "Save in the format of tracefx"),
    );
    region.replaceChildren(this.#log, form, this.#offers);
  }

  /** Puts the keyboard there. */
  focus(): void {
    this.#line.focus();
  }

  async #run(): Promise<void> {
    const text = this.#line.value.trim();
    if (text === "") return;
    this.#close();
    this.#commands.push(text);
    this.#recalled = this.#commands.length;
    try {
      this.#tell(`${text}: ${await this.#edited.edit(text)}`);
      this.#line.value = "";
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #step(way: "undo" | "redo"): Promise<void> {
    try {
      this.#tell((await this.#edited[way]()) ? way : `nothing to ${way}`);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #save(format: "pt2" | "fxg"): void {
    const source = this.#edited.model?.source;
    if (source === undefined) return;
    try {
      save(`edited.${format}`, new Blob([bytesOf(source, format)]));
    } catch (error) {
      this.#refuse(error);
    }
  }

  #tell(text: string, className = ""): void {
    const line = document.createElement("p");
    line.className = className;
    line.textContent = text;
    this.#log.hidden = false;
    this.#log.append(line);
    if (this.#log.childElementCount > MOST_LINES) this.#log.firstElementChild?.remove();
    this.#log.scrollTop = this.#log.scrollHeight;
  }

  #refuse(error: unknown): void {
    this.#tell(error instanceof FxError ? error.message : String(error), "refused");
  }

  #press(event: KeyboardEvent): void {
    const { children } = this.#offers;
    const isOpen = !this.#offers.hidden;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    // Where none is chosen yet, up leads to the last one.
    const from = by < 0 ? Math.max(0, this.#chosen) : this.#chosen;
    if (by !== 0 && isOpen) this.#choose((from + by + children.length) % children.length);
    else if (by !== 0) this.#recall(by);
    else if (event.key === "Tab" && isOpen && !event.shiftKey) this.#accept(Math.max(0, this.#chosen));
    else if (event.key === "Enter" && this.#chosen >= 0) this.#accept(this.#chosen);
    else if (event.key === "Escape" && isOpen) this.#close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Shows a command of before. */
  #recall(by: 1 | -1): void {
    this.#recalled = Math.min(this.#commands.length, Math.max(0, this.#recalled + by));
    this.#line.value = this.#commands[this.#recalled] ?? "";
  }

  #offer(): void {
    const source = this.#edited.model?.source;
    const found = source === undefined ? [] : completions(this.#line.value, source);
    this.#chosen = -1;
    this.#line.removeAttribute("aria-activedescendant");
    this.#offers.hidden = found.length === 0;
    this.#line.ariaExpanded = String(found.length > 0);
    this.#offers.replaceChildren(
      ...found.map(({ word, about }, at) => {
        const offer = document.createElement("li");
        offer.id = `offer-${at}`;
        offer.setAttribute("role", "option");
        offer.ariaSelected = "false";
        offer.dataset["word"] = word;
        offer.textContent = about === "" ? word : `${word} – ${about}`;
        // Before the line loses the keyboard, and the offers close.
        offer.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          this.#accept(at);
        });
        return offer;
      }),
    );
  }

  #choose(at: number): void {
    this.#chosen = at;
    for (const [place, it] of [...this.#offers.children].entries()) it.ariaSelected = String(place === at);
    this.#line.setAttribute("aria-activedescendant", `offer-${at}`);
    this.#offers.children[at]?.scrollIntoView({ block: "nearest" });
  }

  /** Completes the last word. */
  #accept(at: number): void {
    const offer = this.#offers.children[at];
    if (!(offer instanceof HTMLElement)) return;
    this.#line.value = this.#line.value.replace(/[\w.]*$/, offer.dataset["word"] ?? "");
    this.#offer();
  }

  #close(): void {
    this.#offers.hidden = true;
    this.#line.ariaExpanded = "false";
    this.#chosen = -1;
  }
}

function bytesOf(source: Explorable, format: "pt2" | "fxg"): Uint8Array<ArrayBuffer> {
  if (format === "pt2") return archiveOf(source as ExportedProgram) as Uint8Array<ArrayBuffer>;
  const bytes = source instanceof ExportedProgram ? source.toFxg() : saveGraphModule(source);
  return bytes as Uint8Array<ArrayBuffer>;
}
