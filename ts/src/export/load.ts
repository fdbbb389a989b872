/**
 * Opens programs from wherever they are.
 *
 * @module
 */
import type { FileSource, ReadOptions } from "../engine/source.ts";
import { decoded, type ExportedProgram } from "./exportedProgram.ts";
import { opened } from "./opening.ts";

/** Where a program is. */
export type ProgramSource = FileSource;

/** How to open a program. */
export type LoadOptions = ReadOptions;

/**
 * Opens a program that `torch.export.save` wrote, or an `.fxg` file. No code of the file is run.
 *
 * A string is a URL where it begins with a scheme, or in a browser; otherwise it is a path.
 *
 * An archive is read by ranges where that is possible: from files, Blobs, and servers that offer ranges, several of which
 * come at once. Each weight goes straight to the engine's memory, and is there once. With a `sha256` the file comes in its
 * order, one range after the other. Of a server without ranges the file is downloaded first.
 *
 * @example
 * ```ts
 * const program = await load(new URL("./model.pt2", import.meta.url));
 * const fromPicker = await load(input.files[0]);
 * const bounded = await load(bytes, { limits: { nodes: 10_000 } });
 * ```
 */
export async function load(source: ProgramSource, options: LoadOptions = {}): Promise<ExportedProgram> {
  return await opened(source, options, "load", decoded);
}
