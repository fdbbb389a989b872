/**
 * What generated code says in comments: types, and on request shapes and where a node comes from.
 *
 * @module
 */
import type { Node } from "../node.ts";
import { formatSymInt, formatTensorMeta } from "../shapes.ts";
import { SymExpr, TensorMeta } from "../val.ts";
import { commentText } from "./text.ts";

/** What is said besides the types. */
export interface AnnotationOptions {
  /** Strides after shapes. */
  readonly includeStride?: boolean;
  /** Devices after shapes. */
  readonly includeDevice?: boolean;
  /** Colours, by the escape sequences of terminals. */
  readonly colored?: boolean;
  /** Each parameter on a line of its own. */
  readonly expandedDef?: boolean;
  /** Keys of `meta` whose values are shown with where a node comes from. */
  readonly additionalMeta?: readonly string[];
}

/** The names of {@link AnnotationOptions}. */
export const ANNOTATIONS = ["includeStride", "includeDevice", "colored", "expandedDef", "additionalMeta"] as const;

type Paint = (text: string) => string;

/** Writes the comments of one function. */
export class Annotator {
  readonly #options: AnnotationOptions | undefined;
  #previous: string | undefined;

  /** Without options there are types, and nothing else. */
  constructor(options: AnnotationOptions | undefined) {
    this.#options = options;
  }

  /** The type of a node as a comment with a space before it, or nothing. */
  type(node: Node): string {
    const known = this.#options === undefined ? undefined : this.#value(node);
    const text = known ?? (node.type === undefined ? undefined : commentText(node.type));
    return text === undefined ? "" : ` /* ${text} */`;
  }

  /** The lines before a statement that say where its node comes from, where that is not the same as before. */
  origin(node: Node): string[] {
    if (this.#options === undefined || node.op === "placeholder" || node.op === "output") return [];
    const { additionalMeta = [] } = this.#options;
    const shown = additionalMeta.flatMap((key) =>
      node.meta.has(key) ? [`${key}: ${describe(node.meta.get(key))}`] : [],
    );
    const text = [...shown, ...annotationOf(node), placeOf(node)].join(" ");
    const previous = this.#previous;
    if (text === previous) return [];
    this.#previous = text;
    const line = this.dim(`// ${commentText(text)}`);
    return previous === undefined ? [line] : ["", line];
  }

  /** Text that is less important than the rest. */
  dim(text: string): string {
    return this.#paint(2)(text);
  }

  #value(node: Node): string | undefined {
    const val = node.meta.get("val") ?? node.meta.get("tensor_meta") ?? node.meta.get("example_value");
    if (val instanceof TensorMeta) {
      const { includeStride = false, includeDevice = false } = this.#options ?? {};
      const { dtype, sizes, strides, device } = formatTensorMeta(val);
      const stride = includeStride ? this.#paint(34, 2)(commentText(strides)) : "";
      return `${this.#paint(31)(dtype)}${this.#paint(34)(commentText(sizes))}${stride}${includeDevice ? this.#paint(32, 2)(commentText(device)) : ""}`;
    }
    return val instanceof SymExpr ? `Sym(${commentText(formatSymInt(val))})` : undefined;
  }

  #paint(...codes: readonly number[]): Paint {
    if (this.#options?.colored !== true) return (text) => text;
    return (text) => (text === "" ? "" : `${codes.map((it) => `\u001b[${it}m`).join("")}${text}\u001b[0m`);
  }
}

/** Where a node was made, in one line: the innermost frame of its stack. */
function placeOf(node: Node): string {
  const frame = node.stackTrace === undefined ? undefined : innermostFrame(node.stackTrace);
  if (frame === undefined) return "No stacktrace found for following nodes";
  const backward = node.meta.get("autograd_backward") === true ? "Backward of forward node: " : "";
  const code = frame.code === undefined ? "" : `, code: ${frame.code}`;
  return `${backward}File: ${frame.file}:${frame.line} in ${frame.name}${code}`;
}

interface Frame {
  readonly file: string;
  readonly line: string;
  readonly name: string;
  /** The line itself, which stacks of Python hold and stacks of JavaScript do not. */
  readonly code: string | undefined;
}

/**
 * The innermost frame of a stack: the last one of PyTorch's (`File "a.py", line 3, in forward`, and the code below), or the
 * first one of JavaScript's (`at forward (file:///a.ts:3:9)`, `forward@file:///a.ts:3:9`).
 */
export function innermostFrame(stack: string): Frame | undefined {
  const lines = stack.trim().split("\n");
  for (let at = lines.length - 2; at >= 0; at--) {
    const match = /^File "(.+)", line (\d+), in (.+)$/.exec((lines[at] as string).trim());
    if (match === null) continue;
    const [, file, line, name] = match as unknown as [string, string, string, string];
    return { file, line, name, code: (lines[at + 1] as string).trim() };
  }
  const match = /^(?:at )?(?:(?<name>[^@(]*?) ?[@(])?(?<file>[^()]+?):(?<line>\d+):\d+\)?$/.exec(lines[0] as string);
  if (match?.groups === undefined) return undefined;
  const { name = "", file = "", line = "" } = match.groups;
  return { file, line, name: name === "" ? "<anonymous>" : name, code: undefined };
}

/** What the user noted under `custom`, cut to 40 characters each. */
function annotationOf(node: Node): string[] {
  const custom = node.meta.get("custom");
  const entries = custom instanceof Map ? [...custom] : typeof custom === "object" ? Object.entries(custom ?? {}) : [];
  if (entries.length === 0) return [];
  const shown = entries.map(([key, value]) => {
    const text = describe(value);
    return `${describe(key)}: ${text.length > 40 ? `${text.slice(0, 40)}...` : text}`;
  });
  return [`Annotation: {${shown.join(", ")}}`];
}

function describe(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return typeof value === "bigint" || value === undefined ? String(value) : JSON.stringify(value);
  } catch {
    // It holds itself, or something that JSON has no form for.
    return Object.prototype.toString.call(value);
  }
}
