/**
 * The records of the tables that are printed as text.
 *
 * @module
 */

/** The records of a table: each begins a line, and goes on in the lines that are indented. */
export function recordsOf(table: string): string[] {
  return table
    .trim()
    .split(/\n(?! )/)
    .map((it) => it.replaceAll(/\n +/g, " "));
}
