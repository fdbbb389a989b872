/**
 * How far the numbers of an engine are from PyTorch's.
 *
 * @module
 */

/**
 * The largest difference of two elements.
 *
 * @param {ArrayLike<number>} output
 * @param {ArrayLike<number | bigint>} wanted
 */
export function differenceOf(output, wanted) {
  if (output.length !== wanted.length) throw new Error(`${output.length} numbers instead of ${wanted.length}`);
  let difference = 0;
  for (let at = 0; at < wanted.length; at++) {
    const off = Math.abs(Number(output[at]) - Number(wanted[at]));
    // What is no number is wrong, too.
    if (!(off <= difference)) difference = Number.isNaN(off) ? Number.POSITIVE_INFINITY : off;
  }
  return difference;
}
