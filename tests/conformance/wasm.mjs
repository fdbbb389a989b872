/**
 * The engine as JavaScript users have it: the package, through WebAssembly.
 *
 * @module
 */
import { float, load, Tensor } from "tracefx";
import { RESULTS } from "./engine.mjs";

/** @returns {Promise<import("./engine.mjs").Engine>} */
export async function wasmEngine() {
  /** @type {import("tracefx").ExportedProgram | undefined} */
  let program;
  /** @type {import("tracefx").ProgramModule | undefined} */
  let module;
  const started = () => {
    if (module === undefined) throw new Error("no program is started");
    return module;
  };
  return {
    async open(file) {
      module?.dispose();
      [program, module] = [undefined, undefined];
      program = await load(file);
      const outputs = program.graphSignature.outputSpecs.filter((it) => RESULTS.has(it.kind));
      return { graph: String(program.graph), outputs };
    },
    async start() {
      module?.dispose();
      module = undefined;
      module = program?.module();
    },
    async run(inputs) {
      const leaves = inputs.map((it) => (it.kind === "float" ? float(Number(it.value)) : it.value));
      const outputs = /** @type {import("./engine.mjs").Output[]} */ (started().runFlat(leaves));
      return { outputs, inputs: leaves.map((it) => (it instanceof Tensor ? it : undefined)) };
    },
    async state(names) {
      return new Map(names.map((name) => [name, started().getTensor(name)]));
    },
    async close() {
      module?.dispose();
    },
  };
}
