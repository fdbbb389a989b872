/**
 * Whatever way a traced value goes to a function that decides something about it: the graph is right, or the trace is refused,
 * or it says what nobody could see. It is never silently wrong.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { init } from "../../../src/index.ts";
import { DECISIONS, DETOURS, type Detour, isAboutElements, moduleSource, PLAIN } from "./detours.ts";
import { exportOutcome, load, type Loading, type Make, type Outcome, traceOutcome } from "./programs.ts";

beforeAll(async () => void (await init()));

const WAYS = Object.entries(DETOURS);
const NAMES = Object.keys(DECISIONS);

/** How a module is traced. */
type Trace = (Net: Make, checkSources: true | "strict") => Outcome;

const symbolic: Trace = traceOutcome;
const exported: Trace = (Net, checkSources) => exportOutcome(Net, checkSources, false);
const dynamic: Trace = (Net, checkSources) => exportOutcome(Net, checkSources, true);

/** What is wrong with an outcome, if anything is. */
function complaint({ kind, text }: Outcome, decision: string, trace: Trace, isStrict: boolean): string | undefined {
  if (kind === "refused") return undefined;
  // A program may be right about sizes, which are known or guarded; about elements it can only seem so.
  if (kind === "right" && trace !== symbolic && !isAboutElements(decision)) return undefined;
  if (kind === "told" && !isStrict) return /:\d+:\d+\)|\(line \d+/.test(text) ? undefined : `names no line: ${text}`;
  return `${kind} ${text}`;
}

/** The complaints about each decision at the end of a way. */
function complaints(way: Detour, trace: Trace, loading: Loading, isStrict = false): string[] {
  const made = load(
    NAMES.map((name) => moduleSource([way], DECISIONS[name] ?? "")),
    loading,
  );
  return made.flatMap((Net, at) => {
    const name = NAMES[at] ?? "";
    const found = complaint(trace(Net, isStrict ? "strict" : true), name, trace, isStrict);
    return found === undefined ? [] : [`${name}: ${found}`];
  });
}

describe("there are enough of them", () => {
  test("at least 40 ways and 20 decisions", () => {
    expect(WAYS.length).toBeGreaterThanOrEqual(40);
    expect(NAMES.length).toBeGreaterThanOrEqual(20);
  });
});

describe.each<[string, Trace]>([
  ["a symbolic trace", symbolic],
  ["an export", exported],
  ["an export of dynamic sizes", dynamic],
])("%s", (_, trace) => {
  test.each(WAYS)("%s", (_name, way) => {
    expect(complaints(way, trace, "readable")).toEqual([]);
  });
});

describe("what nobody can read", () => {
  test.each(WAYS)("%s", (_name, way) => {
    expect(complaints(way, symbolic, "unreadable")).toEqual([]);
  });
});

describe("strict", () => {
  test.each(WAYS)("%s", (_name, way) => {
    expect(complaints(way, symbolic, "readable", true)).toEqual([]);
  });
});

describe("as the build plugin rewrites it", () => {
  test.each(WAYS)("%s", (_name, way) => {
    expect(complaints(way, symbolic, "instrumented")).toEqual([]);
  });
});

describe("what decides nothing is recorded without a word", () => {
  test.each(WAYS)("%s", (_name, way) => {
    const made = load(
      Object.values(PLAIN).map((fn) => moduleSource([way], fn)),
      "readable",
    );
    const found = made.flatMap((Net) => [symbolic(Net, "strict"), exported(Net, "strict")]);
    expect(found.filter(({ kind }) => kind !== "right")).toEqual([]);
  });
});

/** Numbers that look random, the same in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** How many programs of several ways are made. */
const PROGRAMS = 2000;

describe("two or three ways after each other", () => {
  const inner = WAYS.filter(([, { around }]) => around !== undefined);
  const chunks = Array.from({ length: PROGRAMS / 50 }, (_, at) => at);
  test.each(chunks)("programs %i", (at) => {
    // A chunk makes the same programs when it runs alone.
    const next = random(Math.imul(at + 19, 0x9e3779b1));
    const pick = <T>(items: readonly T[]): T => items[next(items.length)] as T;
    const programs = Array.from({ length: 50 }, () => {
      const ways = [pick(WAYS), ...Array.from({ length: 1 + next(2) }, () => pick(inner))];
      return { ways, decision: pick(NAMES) };
    });
    const loading = (["readable", "readable", "unreadable", "instrumented"] as const)[at % 4] ?? "readable";
    const made = load(
      programs.map(({ ways, decision }) =>
        moduleSource(
          ways.map(([, way]) => way),
          DECISIONS[decision] ?? "",
        ),
      ),
      loading,
    );
    const found = programs.flatMap(({ ways, decision }, index) => {
      const trace = pick([symbolic, symbolic, exported, dynamic]);
      const isStrict = next(4) === 0;
      const text = complaint(trace(made[index] as Make, isStrict ? "strict" : true), decision, trace, isStrict);
      const kind = trace === symbolic ? "symbolic" : trace === exported ? "exported" : "dynamic";
      return text === undefined
        ? []
        : [`${ways.map(([name]) => name).join(" > ")} > ${decision}, ${kind}, ${loading}: ${text}`];
    });
    expect(found).toEqual([]);
  });
});
