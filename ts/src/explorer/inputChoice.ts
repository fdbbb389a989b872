/**
 * What the bar says that a run is given: the example, random inputs, or those of a form, which is loaded when it is asked for.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { Controls } from "./controls.ts";
import type { InputForm } from "./inputForm.ts";
import { randomInputs } from "./inputs.ts";
import type { Explorable } from "./model.ts";

/** What a run is given, and what that is in words. Without inputs it is the example's. */
export interface ChosenInputs {
  readonly inputs?: readonly unknown[];
  readonly told: string;
}

/** The part of the element that chooses inputs. */
export class InputChoice {
  readonly #controls: Controls;
  /** What is shown; the first of two programs, which are both run on its inputs. */
  readonly #shown: () => readonly (Explorable | undefined)[];
  readonly #fail: (error: unknown) => void;
  #form: InputForm | undefined;

  constructor(controls: Controls, shown: () => readonly (Explorable | undefined)[], fail: (error: unknown) => void) {
    this.#controls = controls;
    this.#shown = shown;
    this.#fail = fail;
    controls.inputs.addEventListener("change", () => this.show());
  }

  /** Shows the form where the bar says that inputs are chosen. */
  show(): void {
    this.#open().catch(this.#fail);
  }

  /** Takes files as inputs. */
  async take(files: readonly File[]): Promise<void> {
    this.#controls.inputs.value = "given";
    const form = await this.#open();
    if (form === undefined) {
      throw fxError("InvalidOption", "files are inputs of a program, and none is shown", {
        help: "open a program; of one whose plan is shown, press Plan again",
      });
    }
    await form.take(files);
  }

  /** The inputs that are chosen; undefined where something else was opened meanwhile. */
  async chosen(): Promise<ChosenInputs | undefined> {
    const kind = this.#controls.inputs.value;
    if (kind === "given") {
      const form = await this.#open();
      return form && { inputs: await form.inputs(), told: "on the chosen inputs" };
    }
    const program = this.#program();
    if (program === undefined) return undefined;
    const hasExamples = this.#shown().some((it) => it instanceof ExportedProgram && it.exampleInputs !== null);
    if (kind === "example" && hasExamples) return { told: "on the example inputs" };
    const why = kind === "example" ? ", since the file has no example inputs" : "";
    return { inputs: randomInputs(program), told: `on random inputs${why}` };
  }

  async #open(): Promise<InputForm | undefined> {
    const { given, inputs } = this.#controls;
    const wanted = (): ExportedProgram | undefined => (inputs.value === "given" ? this.#program() : undefined);
    const loaded = wanted() === undefined ? undefined : await import("./inputForm.ts");
    const program = wanted();
    given.hidden = program === undefined;
    if (loaded === undefined || program === undefined) return undefined;
    if (this.#form?.isOf(program) !== true) this.#form = new loaded.InputForm(given, program, this.#fail);
    return this.#form;
  }

  #program(): ExportedProgram | undefined {
    const [first] = this.#shown();
    return first instanceof ExportedProgram ? first : undefined;
  }
}

/** Takes the files that are dropped on an element; programs among them are left to the page. */
export function takeDropped(element: HTMLElement, marked: HTMLElement, take: (files: readonly File[]) => void): void {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    marked.classList.add("dropping");
  });
  for (const name of ["dragleave", "drop"]) element.addEventListener(name, () => marked.classList.remove("dropping"));
  element.addEventListener("drop", (event) => {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0 || files.some(({ name }) => /\.(?:pt2|fxg)$/.test(name))) return;
    event.preventDefault();
    event.stopPropagation();
    take(files);
  });
}
