/**
 * How values show themselves in consoles.
 *
 * @module
 */

/** The method that Node's console asks for the text of an object. */
const INSPECT: symbol = Symbol.for("nodejs.util.inspect.custom");

/** What {@link INSPECT} is given: how many levels are still to be shown, and the settings, with all of them. */
type Inspect = (this: object, depth: number, options: { readonly depth?: number | null }) => unknown;

/** Whether a console shows the value by itself, and not within another one. */
export function isOutermost(depth: number, options: { readonly depth?: number | null }): boolean {
  return options?.depth === undefined || depth === options.depth;
}

/** A text that browsers' consoles show, as JsonML. */
type Shown = readonly [tag: string, attributes: { readonly style: string }, text: string];

/** What browsers' consoles ask for the text of an object. */
interface ConsoleFormatter {
  header(value: unknown): Shown | null;
  hasBody(value: unknown): boolean;
}

const FORMATTER: ConsoleFormatter = {
  header(value) {
    const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
    const inspect = isObject ? (Reflect.get(value, INSPECT) as Inspect | undefined) : undefined;
    if (inspect === undefined) return null;
    const text = inspect.call(value as object, 2, { depth: 2 });
    return typeof text === "string" ? ["div", { style: "white-space: pre-wrap; font-family: monospace" }, text] : null;
  },
  hasBody: () => false,
};

/**
 * Has the consoles of browsers show graphs, nodes, tensors, modules and programs as Node's console does. The browser asks for
 * it where "custom formatters" are allowed in the settings of its developer tools.
 *
 * @example
 * ```ts
 * showInConsole();
 * console.log(gm.graph); // the text of the graph
 * ```
 */
export function showInConsole(): void {
  const page = globalThis as { devtoolsFormatters?: ConsoleFormatter[] };
  const formatters = page.devtoolsFormatters ?? [];
  if (!formatters.includes(FORMATTER)) page.devtoolsFormatters = [...formatters, FORMATTER];
}
