/**
 * How the programs say what they found, as `tests/oracle/gen_ported.py` does: a line is a graph, a value or the first line of an
 * error.
 *
 * @module
 */
import {
  type FxError,
  Float,
  type Module,
  type Node,
  symbolicTrace,
  tensor,
  Tensor,
  type Traceable,
} from "../../src/index.ts";

/** Takes a line. */
export type Say = (it: unknown) => void;

/** A program under the name of the test of PyTorch that it follows. */
export type Programs = Readonly<Record<string, (say: Say) => void>>;

/** A value as the recorded lines have it. */
export function text(it: unknown): string {
  if (it === null || it === undefined) return "None";
  if (typeof it === "boolean") return it ? "True" : "False";
  if (it instanceof Float) return Number.isInteger(it.value) ? `${it.value}.0` : String(it.value);
  if (it instanceof Tensor) return String(it.detach());
  if (Array.isArray(it)) return `[${it.map(text).join(", ")}]`;
  if (it instanceof Map) return `{${Array.from(it, ([key, value]) => `${key}: ${text(value)}`).join(", ")}}`;
  if (typeof it === "object" && Object.getPrototypeOf(it) === Object.prototype)
    return text(new Map(Object.entries(it)));
  return String(it);
}

/** The first line of what an error says, or that there is none. */
export function message(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    return ((error as FxError).reason ?? (error as Error).message).split("\n")[0] as string;
  }
  return "taken";
}

/** A tensor of these sizes with a few small numbers. */
export function numbers(...sizes: number[]): Tensor {
  const count = sizes.reduce((all, it) => all * it, 1);
  const values = Array.from({ length: count }, (_, at) => ((at % 5) - 2) / 2);
  return tensor(values, { dtype: "float32" }).reshape(sizes);
}

/** A tensor of these sizes with one number. */
export function full(value: number, ...sizes: number[]): Tensor {
  const count = sizes.reduce((all, it) => all * it, 1);
  return tensor(
    Array.from({ length: count }, () => value),
    { dtype: "float32" },
  ).reshape(sizes);
}

/** The module with numbers that are easily said again. */
export function filled<M extends Module>(module: M): M {
  const buffers = module.buffers().filter((it) => it.isFloatingPoint());
  for (const [at, it] of [...module.parameters(), ...buffers].entries()) {
    const values = Array.from({ length: it.numel() }, (_, place) => ((place % 7) + (at % 3) - 2) / 4);
    it.copy_(tensor(values, { dtype: "float32" }).reshape(it.shape));
  }
  return module;
}

/** The names of nodes. */
export function names(nodes: Iterable<Node>): string[] {
  return Array.from(nodes, (it) => it.name);
}

/** Says the graph of a trace and what it gives, and gives the module. */
export function checked(say: Say, root: Traceable, ...args: unknown[]): ReturnType<typeof symbolicTrace> {
  const gm = symbolicTrace(root);
  gm.graph.lint();
  say(gm.graph);
  say(gm.forward(...args));
  return gm;
}
