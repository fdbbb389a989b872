/**
 * Names and strings as JavaScript source, whoever chose them.
 *
 * A graph is data, which may come from anywhere, so nothing of it reaches the source but through these functions. What they
 * write is printable text on one line, ends neither a string nor a comment nor a `<script>`, and cannot make a
 * reader see other code than the machine does.
 *
 * @module
 */

/** Unicode's "other" and separators: controls, line ends, what turns the direction of writing, halves of characters. */
const UNPRINTABLE = /[\p{C}\p{Z}]/gu;

/** What would end an HTML script, or begin a comment in it. */
const HTML = /<(?=\/|!--)/g;

/** A string literal. */
export function stringLiteral(text: string): string {
  const body = JSON.stringify(text).slice(1, -1);
  return `"${printable(body).replace(HTML, "\\u003c")}"`;
}

/** Text for the inside of a comment, of either kind. */
export function commentText(text: string): string {
  return printable(text).replaceAll("*/", "*\\/").replace(HTML, "\\u003c");
}

/** Whether this is an identifier that needs no escape. It may be a reserved word. */
export function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** The member of this name: `.name` or `["a name"]`. */
export function memberAccess(name: string): string {
  return isIdentifier(name) ? `.${name}` : `[${stringLiteral(name)}]`;
}

/** The key of this name in an object literal, where `__proto__` would not be a key but the prototype. */
export function propertyKey(name: string): string {
  if (name === "__proto__") return '["__proto__"]';
  return isIdentifier(name) ? name : stringLiteral(name);
}

function printable(text: string): string {
  return text.replace(UNPRINTABLE, (char) => {
    if (char === " ") return char;
    return Array.from({ length: char.length }, (_, at) => escapeUnit(char.charCodeAt(at))).join("");
  });
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
