/**
 * Graphs in the language DOT of Graphviz.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";

/** How a node or an edge looks, by Graphviz's names. */
export type DotAttributes = Readonly<Record<string, string>>;

/** A drawing: nodes in boxes, and arrows between them. */
export class DotGraph {
  readonly name: string;
  readonly #parts: (Box | Arrow)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Adds a box. The texts of attributes may have the escapes of Graphviz in them. */
  addNode(name: string, attributes: DotAttributes): void {
    this.#parts.push({ name, attributes });
  }

  /** Adds an arrow. */
  addEdge(from: string, to: string): void {
    this.#parts.push({ from, to });
  }

  /** Gives every box the colour that it should have. */
  fill(colorOf: (name: string) => string): void {
    for (const [at, it] of this.#parts.entries()) {
      if ("name" in it) this.#parts[at] = { ...it, attributes: { ...it.attributes, fillcolor: colorOf(it.name) } };
    }
  }

  /** The text in DOT. */
  toString(): string {
    return [`digraph ${quotedName(this.name)} {`, "rankdir=TB;", ...this.#parts.map(line), "}", ""].join("\n");
  }

  /**
   * The drawing as SVG. It needs the package `@viz-js/viz`, which is loaded when this is called first. Graphs of thousands
   * of nodes take it minutes: draw their sub-modules one by one.
   */
  async toSvg(): Promise<string> {
    const { instance } = await loadViz();
    return (await instance()).renderString(this.toString(), { format: "svg" });
  }
}

interface Box {
  readonly name: string;
  readonly attributes: DotAttributes;
}

interface Arrow {
  readonly from: string;
  readonly to: string;
}

function line(part: Box | Arrow): string {
  if ("from" in part) return `${quotedName(part.from)} -> ${quotedName(part.to)};`;
  const written = Object.entries(part.attributes).map(([key, value]) => `${key}=${quoted(value)}`);
  return `${quotedName(part.name)} [${written.join(", ")}];`;
}

interface Viz {
  renderString(input: string, options: { readonly format: string }): string;
}

async function loadViz(): Promise<{ readonly instance: () => Promise<Viz> }> {
  try {
    return await import("@viz-js/viz");
  } catch (cause) {
    throw fxError("NotLoaded", "SVG needs the package @viz-js/viz, which is not there", {
      cause,
      help: "npm install @viz-js/viz; or take the text, String(graph), to Graphviz",
    });
  }
}

/** A string of DOT; backslashes are escapes of labels there, which {@link recordText} writes. */
function quoted(text: string): string {
  return `"${text.replaceAll('"', '\\"').replaceAll("\0", "")}"`;
}

/** A name, in which a backslash is itself. */
function quotedName(name: string): string {
  return quoted(name.replaceAll("\\", "\\\\"));
}

/** Text in a field of a record, in which no character means anything. */
export function recordText(text: string): string {
  return text.replace(/[\\{}|<>]/g, "\\$&").replaceAll("\n", "\\n");
}
