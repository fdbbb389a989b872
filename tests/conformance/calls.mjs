/**
 * Calls of operators as programs, for engines whose plans run on a device: what the device gives is compared in the place of
 * what the CPU gives.
 *
 * @module
 */
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FxError, Graph, GraphModule, nn, programOf, tuple } from "tracefx";
import { decodeWith } from "./values.mjs";
import { wasmEngine } from "./wasm.mjs";

/** @typedef {import("./engine.mjs").Engine} Engine */
/** @typedef {import("./engine.mjs").Call} Call */
/** @typedef {import("./engine.mjs").Answer} Answer */
/** @typedef {import("tracefx").Tensor} Tensor */

/**
 * The engine with calls that run as programs of one operator. What is known of a call without data, and whether it is refused, is
 * the CPU's answer, and so are results that are no tensors and numbers that are drawn.
 * @param {Engine} engine
 * @returns {Promise<Engine>}
 */
export async function callingByPrograms(engine) {
  const cpu = await wasmEngine();
  const file = join(tmpdir(), `tracefx-call-${process.pid}.fxg`);
  return {
    ...engine,
    async call(calls, tensors) {
      const answers = await cpu.call(calls, tensors);
      for (const [at, answer] of answers.entries()) {
        if (answer.results === undefined || answer.drew || tensorsOf(answer.results).length === 0) continue;
        answers[at] = await answerOf(engine, file, /** @type {Call} */ (calls[at]), tensors, answer);
      }
      return answers;
    },
    async close() {
      rmSync(file, { force: true });
      await cpu.close();
      await engine.close();
    },
  };
}

/** @type {(engine: Engine, file: string, call: Call, tensors: Map<string, Tensor>, answer: Answer) => Promise<Answer>} */
async function answerOf(engine, file, call, tensors, answer) {
  const { program, inputs } = programOfCall(call, tensors, answer);
  writeFileSync(file, program.toFxg());
  try {
    await engine.open(file, false, false);
    await engine.start();
    const { outputs } = await engine.run(inputs.map((value) => ({ kind: "tensor", value })));
    const given = outputs.values();
    const replaced = (/** @type {any} */ it) => {
      if (Array.isArray(it)) return it.map(replaced);
      return it?.tensor === undefined ? it : { ...it, tensor: given.next().value };
    };
    return { ...answer, results: answer.results?.map(replaced) };
  } catch (error) {
    if (!(error instanceof FxError)) throw error;
    return { error, promised: answer.promised };
  }
}

/**
 * A program of one call, whose inputs are its tensors, each as it lies in memory and seen by its strides within, and whose outputs
 * are the tensors among its results.
 * @param {Call} call
 * @param {Map<string, Tensor>} tensors
 * @param {Answer} answer
 */
function programOfCall({ op, args, kwargs }, tensors, answer) {
  const graph = new Graph();
  /** @type {Tensor[]} */
  const inputs = [];
  /** @type {import("tracefx").Node[]} */
  const placeholders = [];
  // Placeholders stand in front of all that uses them.
  const place = (/** @type {any} */ it) => {
    const found = tensors.get(it.tensor);
    if (found === undefined) throw new Error(`there is no tensor ${it.tensor}`);
    inputs.push(found);
    placeholders.push(graph.placeholder(`x${inputs.length}`));
    return it;
  };
  decodeWith([args, Object.values(kwargs)], place);
  const placed = placeholders.values();
  const seen = ({ size, stride, offset = 0 }) => {
    const { value } = placed.next();
    return stride === undefined
      ? value
      : graph.callFunction("torch.ops.aten.as_strided.default", [value, size, stride, offset]);
  };
  const given = /** @type {any[]} */ (decodeWith(args, seen));
  const named = Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, decodeWith(it, seen)]));
  const result = graph.callFunction(`torch.ops.${op}`, given, /** @type {any} */ (named));
  const parts = (/** @type {any} */ it, /** @type {any} */ node) => {
    if (!Array.isArray(it)) return it?.tensor === undefined ? [] : [node];
    return it.flatMap((part, at) => {
      const isUsed = tensorsOf([part]).length > 0;
      return isUsed ? parts(part, graph.callFunction("operator.getitem", [node, at])) : [];
    });
  };
  graph.output(tuple(...parts(/** @type {any[]} */ (answer.results)[0], result)));
  return { program: programOf(new GraphModule(new nn.Module(), graph)), inputs };
}

/** The tensors among results. @type {(results: any[]) => unknown[]} */
function tensorsOf(results) {
  return results.flatMap((it) => (Array.isArray(it) ? tensorsOf(it) : it?.tensor === undefined ? [] : [it]));
}
