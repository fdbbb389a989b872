/**
 * Opens programs from wherever they are.
 *
 * @module
 */
import { init } from "../engine/engine.ts";
import { type FileSource, type ReadOptions, readSource } from "../engine/source.ts";
import { type ExportedProgram, openProgram } from "./exportedProgram.ts";

/** Where a program is. */
export type ProgramSource = FileSource;

/** How to open a program. */
export type LoadOptions = ReadOptions;

/**
 * Opens a program that `torch.export.save` wrote, or an `.fxg` file. No code of the file is run.
 *
 * A string is a URL where it begins with a scheme, or in a browser; otherwise it is a path.
 *
 * @example
 * ```ts
 * const program = await load(new URL("./model.pt2", import.meta.url));
 * const fromPicker = await load(input.files[0]);
 * const bounded = await load(bytes, { limits: { nodes: 10_000 } });
 * ```
 */
export async function load(source: ProgramSource, options: LoadOptions = {}): Promise<ExportedProgram> {
  const [bytes] = await Promise.all([readSource(source, options, "load"), init()]);
  options.signal?.throwIfAborted();
  return openProgram(bytes, options.limits ?? {});
}
