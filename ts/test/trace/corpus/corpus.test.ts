import { readFileSync } from "node:fs";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { encode } from "../../../../tests/conformance/graphs/corpus.mjs";
import { type GraphModule, init, type Module, PH, symbolicTrace, tuple } from "../../../src/index.ts";
import type { SymbolicTraceOptions, Traceable } from "../../../src/trace/tracer.ts";
import { Tracer } from "../../../src/trace/tracer.ts";
import { thrown } from "../../thrown.ts";

interface Recorded {
  readonly name: string;
  readonly after?: { readonly nodes: readonly { readonly name: string }[]; readonly users: unknown };
  readonly graph_str?: string;
  readonly error?: { readonly type: string; readonly msg: string };
}

const file = new URL("../../../../tests/fixtures/graphs/symbolic_trace.jsonl", import.meta.url);
const cases = readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((it) => JSON.parse(it) as Recorded);

/** Why the graph of a case is not the recorded one: the host language differs. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  f_star:
    "JavaScript has no **kwargs, and of ...args a trace must know how many there are: it is refused until concreteArgs says",
  f_format: "a text of a traced value is of no use in a graph; FX records the text `Proxy(x)`, here it is refused",
  f_intkey: "the keys of JavaScript's objects are strings, and so are those of dicts in a graph; others are refused",
};

/** How the cases are traced that are not traced as they are. */
const OPTIONS: Readonly<Record<string, SymbolicTraceOptions>> = {
  f_annot: { annotations: { x: "torch.Tensor", y: "int", return: "torch.Tensor" } },
  concrete_bool_true: { concreteArgs: { flag: true } },
  concrete_bool_false: { concreteArgs: { flag: false } },
  concrete_dict_of_PH: { concreteArgs: { d: { a: PH, b: PH, c: PH } } },
  concrete_nested: { concreteArgs: { t: tuple<unknown[]>({ a: PH }, [PH, PH]) } },
  concrete_nested_with_value: { concreteArgs: { t: tuple<unknown[]>({ a: PH }, [PH, 3]) } },
  concrete_none: { concreteArgs: { val: null } },
  concrete_mixed: { concreteArgs: { a: { a: PH, z: PH }, b: true } },
  concrete_tuple_count_mismatch: { concreteArgs: [1] },
};

class AllLeaf extends Tracer {
  override isLeafModule(): boolean {
    return true;
  }
}

class NoLeaf extends Tracer {
  override isLeafModule(): boolean {
    return false;
  }
}

class BufferProxies extends Tracer {
  override proxyBufferAttributes = true;
}

const TRACERS: Readonly<Record<string, new () => Tracer>> = {
  M_nested_all_leaf: AllLeaf,
  M_param_buffers_as_proxies: BufferProxies,
  M_seq_no_leaf_relu_only: NoLeaf,
};

/** What is traced in each case; the modules draw their weights, so they wait for the engine. */
const roots = new Map<string, () => Traceable>();
const refused = new Map<string, readonly [kind: string, fn: Traceable]>();

beforeAll(async () => {
  await init();
  const { FUNCTIONS, REFUSED } = await import("./functions.ts");
  const { MODULES } = await import("./modules.ts");
  for (const [name, fn] of Object.entries(FUNCTIONS)) roots.set(name, () => fn as Traceable);
  for (const [name, make] of Object.entries(MODULES)) roots.set(name, make as () => Module);
  for (const [name, [kind, fn]] of Object.entries(REFUSED)) refused.set(name, [kind, fn as Traceable]);
});

function traced(name: string): GraphModule {
  const make = roots.get(name);
  if (make === undefined) throw new Error(`the case ${name} has no counterpart`);
  const TracerClass = TRACERS[name];
  return symbolicTrace(make(), {
    ...OPTIONS[name],
    ...(TracerClass === undefined ? {} : { tracer: new TracerClass() }),
  });
}

/** A warning that is always there is read by nobody: none of these functions does what a trace would have to tell of. */
const warn = vi.spyOn(console, "warn");
afterEach(() => expect(warn.mock.calls).toEqual([]));

describe("PyTorch's recorded traces", () => {
  test("are 83, and each has a counterpart or a reason", () => {
    expect(cases).toHaveLength(83);
    const known = new Set([...roots.keys(), ...refused.keys(), ...Object.keys(DIFFERENCES)]);
    expect(cases.map(({ name }) => name).filter((name) => !known.has(name))).toEqual([]);
    expect(known.size).toBe(83);
  });

  const graphs = cases.filter(({ name, after }) => after !== undefined && !Object.hasOwn(DIFFERENCES, name));
  test.each(graphs)("$name gives the recorded graph", ({ name, after, graph_str: text }) => {
    const { graph } = traced(name);
    expect(`${graph}`).toBe(text);
    expect(encode(graph as never)).toEqual(after);
  });

  const errors = cases.filter(({ error }) => error !== undefined);
  test.each(errors)("$name is refused, as in FX: $error.msg", ({ name }) => {
    const [kind, fn] = refused.get(name) ?? [];
    const error = thrown(() => symbolicTrace(fn as Traceable, OPTIONS[name]));
    expect(error.kind).toBe(kind);
    expect(error.help).not.toBe("");
  });

  test("of which some cannot be the same here", () => {
    const star = thrown(() => symbolicTrace((x: string, ...args: string[]) => [x, args[0]]));
    expect(star.help).toContain("concreteArgs: { args: [PH, PH] }");
    expect(thrown(() => symbolicTrace((x: string) => `${x}`)).kind).toBe("TraceCoercion");
    expect(thrown(() => symbolicTrace((x: string) => new Map([[42, x]]))).help).toBe("use strings as keys");
  });
});
