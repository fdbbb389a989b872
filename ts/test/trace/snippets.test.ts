import { beforeAll, describe, expect, it, vi } from "vitest";
import { FxError } from "../../src/base/errors.ts";
import { init, tensor } from "../../src/index.ts";
import { Module, unboundForwardOf } from "../../src/nn/module.ts";
import { functionSignature } from "../../src/trace/analysis/signature.ts";
import { Tracer, symbolicTrace } from "../../src/trace/tracer.ts";
import { brief, loadFile, markedLine, pathOf, type Snippet } from "./snippets/outcomes.ts";

const FILES = ["truth.cjs", "comparisons.cjs", "values.cjs", "functions.cjs"];

class Listening extends Tracer {
  readonly warnings: string[] = [];
  protected override warn({ message }: FxError): void {
    this.warnings.push(message);
  }
}

/** What tracing a snippet comes to. */
function outcome([fn, , concreteArgs = {}]: Snippet): { graph?: string; error?: FxError; warnings: string[] } {
  const tracer = new Listening();
  const debug = vi.spyOn(console, "debug").mockImplementation(() => undefined);
  try {
    const { graph } = symbolicTrace(fn, { tracer, concreteArgs });
    return { graph: brief(graph), warnings: tracer.warnings };
  } catch (error) {
    if (error instanceof FxError) return { error, warnings: tracer.warnings };
    throw error;
  } finally {
    debug.mockRestore();
  }
}

function sourceOf(fn: Snippet[0]): Function {
  return fn instanceof Module ? unboundForwardOf(fn) : fn;
}

/** The line that an error names, in the file: its own, or that of a place in a function whose text is marked. */
function namesLine(error: FxError, file: string, line: { own: number; file: number }): boolean {
  const inFile = error.message.includes(`${pathOf(file)}:${line.file}:`);
  // Where a function begins is only known of one that uses something that is recorded.
  return inFile || (error.reason.includes(`line ${line.own}, column`) && !error.reason.includes(pathOf(file)));
}

/** The arguments of a call: the plain ones, and tensors with these elements for the others. */
function argumentsOf([fn, , concreteArgs = {}]: Snippet, elements: readonly number[]): unknown[] {
  const signature = functionSignature(sourceOf(fn));
  const params = typeof signature === "string" ? [] : signature.params;
  return params.map(({ name }, index) =>
    name in concreteArgs ? concreteArgs[name] : tensor(elements.map((element) => element * (index + 1))),
  );
}

describe("there are enough of them", () => {
  it("at least 120", () => {
    expect(FILES.flatMap((file) => Object.keys(loadFile(file))).length).toBeGreaterThanOrEqual(120);
  });
});

describe.each(FILES)("%s as it is", (file) => {
  it.each(Object.entries(loadFile(file)))("%s", (_, snippet) => {
    const [fn, expected] = snippet;
    const { graph, error, warnings } = outcome(snippet);
    if ("graph" in expected) {
      expect(error).toBeUndefined();
      expect(graph).toBe(expected.graph);
      expect(warnings.join("\n")).toContain(expected.warns ?? "");
      expect(warnings).toHaveLength(expected.warns === undefined ? 0 : 1);
    } else {
      expect(graph).toBeUndefined();
      expect(error?.kind).toBe(expected.kind);
      expect(error?.message).toContain(expected.advice);
      const line = markedLine(file, sourceOf(fn));
      if (error !== undefined && line !== undefined) expect(namesLine(error, file, line), error.message).toBe(true);
    }
  });
});

describe.each(FILES)("%s as the build plugin rewrites it", (file) => {
  const asIs = loadFile(file);
  const snippets = loadFile(file, { operators: false });
  it.each(Object.entries(snippets))("%s", (name, snippet) => {
    const [, expected, , built] = snippet;
    const { graph, error } = outcome(snippet);
    const recorded = "graph" in expected && expected.isBlind !== true ? expected.graph : built?.plugin;
    if (recorded !== undefined) {
      expect(error).toBeUndefined();
      expect(graph).toBe(recorded);
    } else {
      expect(graph).toBeUndefined();
      expect(error?.kind).toMatch(/^Trace/);
      const line = markedLine(file, sourceOf((asIs[name] as Snippet)[0]));
      if (error !== undefined && line !== undefined) expect(namesLine(error, file, line), error.message).toBe(true);
    }
  });
});

describe.each(FILES)("%s with its operators recorded", (file) => {
  const snippets = Object.entries(loadFile(file, { operators: true }));
  it.each(snippets.filter(([, [, , , built]]) => built?.operators !== undefined))("%s", (_, snippet) => {
    expect(outcome(snippet)).toMatchObject({ graph: snippet[3]?.operators });
  });

  it.each(snippets.filter(([, [, expected]]) => "graph" in expected))("%s: the same graph", (_, snippet) => {
    const [, expected] = snippet;
    if ("graph" in expected && expected.isBlind !== true) expect(outcome(snippet).graph).toBe(expected.graph);
  });
});

describe.each(FILES)("%s: what is recorded gives what the code gives", (file) => {
  beforeAll(() => init());

  const recorded = Object.entries(loadFile(file)).filter(
    ([, [, expected]]) => "graph" in expected && !expected.isSymbolic,
  );
  it.each(recorded)("%s", (_, snippet) => {
    const [fn, expected, concreteArgs = {}] = snippet;
    if (!("graph" in expected)) return;
    // Elements that are true and false, negative and positive, so that both branches would be taken if there were two.
    const kinds = [
      [1.5, -2.5, 3.5],
      [0, 0, 0],
      [-1, -1, -1],
    ];
    const verify = kinds.map((kind) => argumentsOf(snippet, kind.slice(0, expected.width ?? 2)));
    const trace = (): unknown => symbolicTrace(fn, { tracer: new Listening(), concreteArgs, verify });
    if (expected.isBlind === true) expect(trace).toThrow("the trace does not do what was traced");
    else expect(trace).not.toThrow();
  });
});
