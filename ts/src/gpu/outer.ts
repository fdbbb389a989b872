/**
 * Which tensors of a call the buffers of a plan are.
 *
 * The engine takes and gives tensors, and a program names buffers of its plan. Which is which is asked once for a plan, by runs without steps: the
 * memory of each input and of each result has a number of its own, and a run says one bit of it, in the first byte. What is no such memory is
 * the same in all of these runs, and all numbers have bits of both kinds.
 *
 * @module
 */
import type { Program } from "../../../bindings/gpu.ts";
import { fxError } from "../base/errors.ts";
import type { EngineValue } from "../engine/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { host } from "./host.ts";
import { engineBytes } from "./standIns.ts";
import { viewOf } from "./tensor.ts";

/** Which tensors of a call the buffers of a plan are. */
export interface OuterBuffers {
  /** By buffer, the place among the leaves of the input in whose memory it is. */
  readonly inputs: ReadonlyMap<number, number>;
  /** For each result, the buffer that the run makes for it; nothing where there is none. */
  readonly results: readonly (number | undefined)[];
}

/** A run of the plan without steps. */
export interface EmptyRun {
  /** Begins it. */
  begin(leaves: readonly unknown[]): boolean;
  /** The first byte of a buffer. */
  read(buffer: number): number;
  /** Writes it. */
  write(buffer: number, byte: number): void;
  /** Ends the run, and gives the results. */
  end(): readonly EngineValue[];
}

/** Asks which tensors of calls with leaves like these, which the engine sees, are buffers of the program, of which the device does all steps. */
export function outerBuffers(program: Program, leaves: readonly unknown[], run: EmptyRun): OuterBuffers {
  const hasElements = (buffer: number): boolean => (program.places[buffer]?.n_elements ?? 0) > 0;
  const inputs = leaves.flatMap((leaf, at) => (leaf instanceof host.Tensor && leaf.numel() > 0 ? [at] : []));
  // Where the device does all steps, what goes up is of inputs alone.
  const uploads = [...new Set(program.steps.flatMap((it) => it.uploads))].filter(hasElements);
  const outputs = program.outputs.filter((it) => hasElements(it) && !program.constants.includes(it));
  // The numbers begin with 1, and the largest one has a bit that is zero.
  const nBits = Math.ceil(Math.log2(inputs.length + outputs.length + 2));
  const [ofUploads, ofInputs, ofResults] = [uploads.map(() => 0), inputs.map(() => 0), [] as number[]];
  for (let bit = 0; bit < nBits; bit++) {
    const byteOf = (number: number): number => (number >> bit) & 1;
    const note = (to: number[], at: number, byte: number): void => {
      to[at] = (to[at] ?? 0) | ((byte & 1) << bit);
    };
    const standIns = new Map(inputs.map((leaf, at) => [leaf, marked(leaves[leaf] as Tensor, byteOf(at + 1))]));
    if (!run.begin(leaves.map((it, at) => standIns.get(at) ?? it))) {
      throw fxError("Internal", "a plan does not take inputs like those that it was made for");
    }
    uploads.forEach((buffer, at) => note(ofUploads, at, run.read(buffer)));
    outputs.forEach((buffer, at) => run.write(buffer, byteOf(inputs.length + at + 1)));
    const results = run.end();
    const given = new Set(Array.from(standIns.values(), (it) => host.layoutOf(it).storage));
    results.forEach((it, at) => {
      const isOwn = it instanceof host.Tensor && it.numel() > 0 && !given.has(host.layoutOf(it).storage);
      note(ofResults, at, isOwn ? firstByte(it) : 0);
      if (it instanceof host.Tensor) it.dispose();
    });
    inputs.forEach((leaf, at) => note(ofInputs, at, firstByte(standIns.get(leaf) as Tensor)));
    for (const it of standIns.values()) it.dispose();
  }
  const outputOf = (number: number): number | undefined => outputs[number - inputs.length - 1];
  const found = new Map<number, number>();
  uploads.forEach((buffer, at) => {
    const leaf = inputs[(ofUploads[at] as number) - 1];
    if (leaf !== undefined) found.set(buffer, leaf);
  });
  // An input that is written whole does not go up.
  inputs.forEach((leaf, at) => {
    const buffer = outputOf(ofInputs[at] as number);
    if (buffer !== undefined) found.set(buffer, leaf);
  });
  return { inputs: found, results: ofResults.map(outputOf) };
}

/** A tensor of the engine that lies as this one does, in memory that begins with this byte. */
function marked(tensor: Tensor, byte: number): Tensor {
  using memory = engineBytes(host.layoutOf(tensor).byteLength, byte);
  return host.viewOn(memory, viewOf(tensor));
}

/** The first byte of the memory that a tensor of the engine looks at. */
function firstByte(tensor: Tensor): number {
  using byte = host.viewOn(tensor, { dtype: "uint8", shape: [1], strides: [1], offset: 0 });
  return byte.data[0] as number;
}
