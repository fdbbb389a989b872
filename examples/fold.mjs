/**
 * An edit of a real program: folding batch norms into the convolutions before them.
 *
 * In evaluation a batch norm computes `(x - mean) * scale + bias` with `scale = weight / sqrt(var + eps)`, per channel. A
 * convolution is linear, so scaling its filters and shifting its bias gives the same:
 * `conv(x) * scale + (bias - mean * scale)`.
 *
 * @module
 */
import { GraphError, isNode, tensor } from "tracefx";

/** @typedef {import("tracefx").ExportedProgram} ExportedProgram */
/** @typedef {import("tracefx").Node} Node */

const CONV = "torch.ops.aten.conv2d.default";
const BATCH_NORM = "torch.ops.aten.batch_norm.default";

/**
 * Folds each batch norm of a program in evaluation into the convolution that it follows, where that has filters and a bias
 * of its own; others are left alone.
 *
 * @param {ExportedProgram} program
 * @returns {number} how many were folded
 */
export function foldBatchNorms(program) {
  const { graph } = program;
  let folded = 0;
  for (const norm of graph.findNodes({ op: "call_function", target: BATCH_NORM })) {
    const [conv, weight, bias, mean, variance, training, , eps] = /** @type {Node[]} */ (norm.args);
    if (conv?.target !== CONV || conv.users.size !== 1 || training !== false) continue;
    const [, convWeight, convBias] = /** @type {Node[]} */ (conv.args);
    // Filters that another convolution uses too would change for both, and without a bias there is nowhere for the shift.
    if ([weight, bias, convWeight, convBias].some((it) => !isNode(it))) continue;
    if (convWeight?.users.size !== 1 || convBias?.users.size !== 1) continue;
    const [filters, shifts] = [tensorOf(program, convWeight), tensorOf(program, convBias)];
    const [gamma, beta] = [numbers(program, weight), numbers(program, bias)];
    const [mu, sigma2] = [numbers(program, mean), numbers(program, variance)];

    const scale = gamma.map((it, channel) => it / Math.sqrt(at(sigma2, channel) + Number(eps)));
    const perFilter = filters.numel() / at(filters.shape, 0);
    const scaled = filters.toFloat32Array().map((it, i) => it * at(scale, Math.floor(i / perFilter)));
    const shifted = shifts.toFloat32Array().map((it, c) => (it - at(mu, c)) * at(scale, c) + at(beta, c));
    program.loadStateDict(
      new Map([
        [nameOf(program, convWeight), tensor(scaled, { shape: filters.shape })],
        [nameOf(program, convBias), tensor(shifted, { shape: shifts.shape })],
      ]),
    );
    norm.replaceAllUsesWith(conv);
    graph.eraseNode(norm);
    folded += 1;
  }
  graph.lint();
  return folded;
}

/** The qualified name of the parameter or buffer that an input of the graph is. */
function nameOf(/** @type {ExportedProgram} */ program, /** @type {Node | undefined} */ input) {
  const { inputsToParameters, inputsToBuffers } = program.graphSignature;
  const name = inputsToParameters.get(input?.name ?? "") ?? inputsToBuffers.get(input?.name ?? "");
  if (name === undefined) throw new GraphError("GraphArgument", `${input?.name} is neither a parameter nor a buffer`);
  return name;
}

function tensorOf(/** @type {ExportedProgram} */ program, /** @type {Node | undefined} */ input) {
  const found = program.stateDict.get(nameOf(program, input));
  if (found === undefined) throw new GraphError("GraphArgument", `the program has no state for ${input?.name}`);
  return found;
}

function numbers(/** @type {ExportedProgram} */ program, /** @type {Node | undefined} */ input) {
  return Array.from(tensorOf(program, input).toFloat32Array());
}

function at(/** @type {ArrayLike<number>} */ values, /** @type {number} */ index) {
  return values[index] ?? Number.NaN;
}
