/**
 * How an engine is timed, in a process of Node as in a page.
 *
 * @module
 */

/** @typedef {import("../../ts/dist/index.js").Tensor} Tensor */
/** @typedef {() => ArrayLike<number> | Promise<ArrayLike<number>>} Run Gives the elements of the first result. */

/**
 * What an engine is opened with.
 *
 * @typedef {object} Opening
 * @property {(ending: string) => Promise<Uint8Array>} read reads a file of the workload
 * @property {ReadonlyMap<string, Tensor>} inputs the inputs by name, in order
 * @property {(name: string) => Promise<any>} peer imports a package of a peer
 * @property {number} threads
 */

/**
 * What a workload took.
 *
 * @typedef {object} Timed
 * @property {number} ms the shortest call; where the clock is coarse, the shortest mean of several
 * @property {number} load from the file to the first result
 * @property {ArrayLike<number>} output
 */

/**
 * Opens a workload, and calls it for so many seconds after a warm-up.
 *
 * @param {(opening: Opening) => Promise<Run>} open
 * @param {Opening} opening
 * @param {number} seconds
 * @param {number} [tick] the milliseconds that the clock tells apart, in which as many calls are timed together as there is room for
 * @returns {Promise<Timed>}
 */
export async function timed(open, opening, seconds, tick = 0) {
  const start = performance.now();
  const run = await open(opening);
  const output = await run();
  const load = performance.now() - start;
  const warm = performance.now();
  await run();
  const nCalls = Math.max(1, Math.ceil(tick / Math.max(performance.now() - warm, 0.001)));
  let ms = Number.POSITIVE_INFINITY;
  const end = performance.now() + seconds * 1000;
  for (let round = 0; round < 5 || performance.now() < end; round++) {
    const begin = performance.now();
    for (let call = 0; call < nCalls; call++) await run();
    ms = Math.min(ms, (performance.now() - begin) / nCalls);
  }
  return { ms, load, output };
}
