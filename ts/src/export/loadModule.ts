/**
 * Programs as something that can be called, and nothing else: the graph stays in the engine.
 *
 * @module
 */
import { checkOptions } from "../base/given.ts";
import { type FileSource, READ_OPTIONS, type ReadOptions } from "../engine/source.ts";
import { decodeCall } from "./encoding/call.ts";
import { CALL_OPTIONS, type ModuleOptions, moduleSettings } from "./moduleOptions.ts";
import { opened } from "./opening.ts";
import { ProgramModule } from "./programModule.ts";

/** How a program is opened, and how it is made ready to be called. */
export interface LoadModuleOptions extends ReadOptions {
  /** How it is called. Its guards are always checked. */
  readonly module?: Omit<ModuleOptions, "checkGuards">;
}

/**
 * Opens a program and makes it ready to be called: what `(await load(source)).module(options.module)` gives, without the graph,
 * which is neither decoded nor kept in JavaScript. The state is there once.
 *
 * @example
 * ```ts
 * import { loadModule, tensor } from "tracefx/load";
 *
 * using model = await loadModule("model.pt2");
 * const logits = model(tensor([[1, 2, 3]], { dtype: "float32" }));
 * ```
 */
export async function loadModule(source: FileSource, options: LoadModuleOptions = {}): Promise<ProgramModule> {
  checkOptions("loadModule", options, [...READ_OPTIONS, "module"]);
  const { module = {}, ...reading } = options;
  checkOptions("loadModule", module, CALL_OPTIONS);
  const { run, runner } = moduleSettings("loadModule", module);
  return await opened(source, reading, "loadModule", (program) => {
    try {
      return new ProgramModule(decodeCall(program.outline()), runner(program), run);
    } finally {
      program.free();
    }
  });
}
