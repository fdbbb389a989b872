/**
 * Texts of files on a terminal, which obeys what it prints.
 *
 * @module
 */

/** The text with control characters escaped, the ends of lines among them. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (it) => `\\u{${it.charCodeAt(0).toString(16)}}`);
}

/** The lines of a text, each with control characters escaped. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}
