/**
 * How values show themselves in consoles.
 *
 * @module
 */

/** The method that Node's console asks for the text of an object. */
const INSPECT: symbol = Symbol.for("nodejs.util.inspect.custom");

/** What {@link INSPECT} is given: how many levels are still to be shown, and the settings, with all of them. */
type Inspect = (this: object, depth: number, options: { readonly depth?: number | null }) => unknown;

/** The methods of our own classes. Those of others are for Node alone, and may need what only Node gives them. */
const shown = new WeakSet<Inspect>();

/** Notes that browsers' consoles show what this method gives, too. */
export function shownBy<T extends Inspect>(inspect: T): T {
  shown.add(inspect);
  return inspect;
}

/** Notes the same of what objects of these classes show. */
export function showThemselves(...classes: readonly { readonly prototype: object }[]): void {
  for (const { prototype } of classes) shownBy(Reflect.get(prototype, INSPECT) as Inspect);
}

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
    const text = textOf(value);
    return typeof text === "string" ? ["div", { style: "white-space: pre-wrap; font-family: monospace" }, text] : null;
  },
  hasBody: () => false,
};

/** What an object of one of our classes shows; of prototypes, which have nothing to show, and of all others nothing. */
function textOf(value: unknown): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  try {
    const inspect = Reflect.get(value, INSPECT) as Inspect;
    return shown.has(inspect) ? inspect.call(value, 2, { depth: 2 }) : undefined;
  } catch {
    return undefined;
  }
}

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
