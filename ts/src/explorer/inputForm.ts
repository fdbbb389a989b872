/**
 * Where people choose what each input of a program is: the example, random numbers, a file, or what they write.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { ExportedProgram } from "../export/exportedProgram.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { button, choice, part } from "./dom.ts";
import { chosenFiles } from "./files.ts";
import { exampleLeaves } from "./run.ts";
import {
  ACCEPTED,
  kindOfFile,
  PIXEL_SCALES,
  type PixelScale,
  SAMPLE_RATES,
  tensorOfFile,
  tensorsOfFile,
  valueOfText,
} from "./inputFiles.ts";
import { filledInputs, inputsAmong, type InputSlot, inputSlots } from "./inputs.ts";

/** Where an input comes from. */
type Source = "example" | "random" | "file" | "text";

const SOURCES: Readonly<Record<Source, string>> = {
  example: "Example",
  random: "Random",
  file: "File…",
  text: "Text or numbers",
};

/** The form of the inputs of one program. */
export class InputForm {
  readonly #form: HTMLFormElement;
  readonly #program: ExportedProgram;
  /** All inputs, by whose places files may name them; those that are constants have no row. */
  readonly #slots: readonly InputSlot[];
  readonly #rows: readonly InputRow[];

  /** Fills a form with a row for each input. Problems of files that are chosen are told to `fail`. */
  constructor(form: HTMLFormElement, program: ExportedProgram, fail: (error: unknown) => void) {
    this.#form = form;
    this.#program = program;
    const examples = exampleLeaves(program);
    this.#slots = inputSlots(program);
    this.#rows = this.#slots.flatMap((slot, at) =>
      slot.constant === undefined ? [new InputRow(slot, at, examples?.[at])] : [],
    );
    for (const row of this.#rows) {
      row.onFile = (files) => void this.take(files, row).catch(fail);
    }
    const heading = document.createElement("h3");
    heading.textContent = "Inputs";
    const hint = part("p", "hint");
    hint.textContent =
      this.#rows.length === 0
        ? "The program takes none."
        : ".npy, .npz, .safetensors, images and sounds can be dropped here. They are read in this page.";
    form.replaceChildren(heading, hint, ...this.#rows.map((it) => it.element));
  }

  /** Whether it is about this program. */
  isOf(program: ExportedProgram): boolean {
    return this.#program === program;
  }

  /**
   * Takes files: one with several tensors gives the inputs of their names, and any other one is the input of its own name, the one that is
   * given, or the next that no file has yet.
   */
  async take(files: readonly File[], row?: InputRow): Promise<void> {
    for (const file of files) {
      if (kindOfFile(file) === "arrays") {
        const tensors = await tensorsOfFile(file);
        const [only] = tensors.values();
        const found = inputsAmong(this.#slots, tensors);
        const isForOne = found.size === 0 && tensors.size === 1 && only !== undefined;
        const target = isForOne ? (row ?? this.#free()) : undefined;
        if (target !== undefined && only !== undefined) target.give({ name: file.name, tensor: only });
        for (const it of this.#rows) {
          const tensor = found.get(it.slot.name);
          if (tensor !== undefined) it.give({ name: file.name, tensor });
        }
        if (found.size === 0 && target === undefined) {
          throw fxError("InputCount", `${file.name} has ${[...tensors.keys()].join(", ")}, which are no inputs`, {
            help: `the inputs are ${this.#rows.map((it) => it.slot.name).join(", ")}`,
          });
        }
        continue;
      }
      const name = file.name.replace(/\.\w+$/, "");
      const named = this.#rows.find((it) => it.slot.name === name);
      (named ?? row ?? this.#free())?.give({ name: file.name, file });
    }
    this.#form.scrollTop = 0;
  }

  /** The inputs as they are chosen. */
  async inputs(): Promise<unknown[]> {
    const given = new Map<string, unknown>();
    for (const row of this.#rows) {
      const value = await row.value();
      if (value !== undefined) given.set(row.slot.name, value);
    }
    return filledInputs(this.#program, given);
  }

  /** The first input that no file is for; the first of all where each has one. */
  #free(): InputRow | undefined {
    return this.#rows.find((it) => it.source !== "file") ?? this.#rows[0];
  }
}

/** What a file gives an input: itself, to be read in the way that is chosen, or a tensor that was in it. */
type FromFile = { readonly name: string } & ({ readonly file: File } | { readonly tensor: Tensor });

/** The row of an input. */
class InputRow {
  readonly element = part("fieldset", "input");
  /** Files were chosen for this input. */
  onFile: (files: readonly File[]) => void = () => undefined;
  readonly slot: InputSlot;
  readonly #example: unknown;
  readonly #source: HTMLSelectElement;
  readonly #text = part("textarea", "text");
  readonly #told = part("span", "told");
  readonly #pixels: HTMLSelectElement;
  readonly #rate: HTMLSelectElement;
  readonly #again: HTMLButtonElement;
  #file: FromFile | undefined;

  constructor(slot: InputSlot, at: number, example: unknown) {
    this.slot = slot;
    this.#example = example;
    const { name, text } = slot;
    const legend = document.createElement("legend");
    const value = document.createElement("code");
    value.textContent = text;
    legend.append(name || `input ${at}`, " ", value);
    const { example: ofExample, ...others } = SOURCES;
    this.#source = choice(`Source of ${name}`, example === undefined ? others : { example: ofExample, ...others });
    this.#pixels = choice(`Pixels of ${name}`, PIXEL_SCALES);
    this.#rate = choice(
      `Sample rate of ${name}`,
      Object.fromEntries(SAMPLE_RATES.map((it) => [it, `${it.toLocaleString("en")} Hz`])),
    );
    this.#text.ariaLabel = `Text or numbers of ${name}`;
    this.#text.rows = 2;
    this.#again = button("Choose…", () => void this.#choose());
    this.#again.ariaLabel = `Choose a file for ${name}`;
    this.#source.addEventListener("change", () => {
      this.#show();
      if (this.source === "file" && this.#file === undefined) void this.#choose();
    });
    this.element.append(legend, this.#source, this.#again, this.#told, this.#pixels, this.#rate, this.#text);
    this.#show();
  }

  get source(): Source {
    return this.#source.value as Source;
  }

  /** Takes what a file has for it. */
  give(file: FromFile): void {
    this.#file = file;
    this.#source.value = "file";
    this.#show();
  }

  /** What it is to be; undefined where it is to be random. */
  async value(): Promise<unknown> {
    switch (this.source) {
      case "example":
        return this.#example;
      case "random":
        return undefined;
      case "text":
        return valueOfText(this.#text.value, this.slot);
      case "file": {
        const from = this.#file;
        if (from === undefined) {
          throw fxError("InputCount", `no file is chosen for the input \`${this.slot.name}\``, {
            help: "choose one, or let the input be random",
          });
        }
        if ("tensor" in from) return from.tensor;
        const pixels = this.#pixels.value as PixelScale;
        return await tensorOfFile(from.file, this.slot, { pixels, sampleRate: Number(this.#rate.value) });
      }
    }
    return this.source satisfies never;
  }

  async #choose(): Promise<void> {
    const files = await chosenFiles(ACCEPTED);
    if (files.length > 0) this.onFile(files);
    else if (this.#file === undefined) this.#source.selectedIndex = 0;
    this.#show();
  }

  #show(): void {
    const { source } = this;
    const kind = this.#file !== undefined && "file" in this.#file ? kindOfFile(this.#file.file) : undefined;
    this.#text.hidden = source !== "text";
    this.#again.hidden = this.#told.hidden = source !== "file";
    this.#told.textContent = this.#file?.name ?? "none yet";
    this.#pixels.hidden = source !== "file" || kind !== "image";
    this.#rate.hidden = source !== "file" || kind !== "sound";
  }
}
