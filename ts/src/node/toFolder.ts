/**
 * Graph modules as folders: an import of its own, `tracefx/node`, for hosts with files.
 *
 * @module
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { sourceOf } from "../save/source.ts";
import { writeSafetensors } from "../tensor/safetensors.ts";
import { checkOptions } from "../base/given.ts";

/** How a folder is written. */
export interface FolderOptions {
  /** The name of the JavaScript module in the folder, without its ending. */
  readonly name?: string;
}

/**
 * Writes a graph module as a folder that runs by itself: `module.mjs` with readable code, which imports nothing but
 * tracefx, and `module.safetensors` with its parameters and buffers. `GraphModule.to_folder`.
 *
 * Modules of `torch.nn` that the graph calls are made again from their properties; modules of other classes are refused
 * by name. Functions of yours that the graph calls must be registered with `wrap` before it runs.
 *
 * @example
 * ```ts
 * import { toFolder } from "tracefx/node";
 *
 * await toFolder(symbolicTrace(model), "exported");
 * const { default: again } = await import("./exported/module.mjs");
 * ```
 */
export async function toFolder(module: GraphModule, folder: string, options: FolderOptions = {}): Promise<void> {
  checkOptions("toFolder", options, ["name"]);
  const { name = "module" } = options;
  if (!/^[\w-]+$/.test(name)) {
    throw fxError("InvalidOption", `\`${name}\` cannot be the name of a file here`, {
      help: "use letters, digits, _ and -",
    });
  }
  const { code, tensors } = sourceOf(module, `./${name}.safetensors`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.mjs`), code);
  await writeFile(join(folder, `${name}.safetensors`), writeSafetensors(tensors));
}
