/**
 * `npx tracefx bench`: how long a program takes in WebAssembly, by its plan and node by node, on one thread and on several.
 *
 * @module
 */
import { RUN_MODES } from "../../../bindings/command.ts";
import { setNumThreads } from "../engine/engine.ts";

/** For how long a way of running is timed, in milliseconds, where nobody says how often. */
const BUDGET = 1000;
/** How often it runs at least, and at most, within that. */
const [FEWEST, MOST] = [3, 10_000];

/** How long runs of one kind took, in milliseconds. The range from `p10` to `p90` has eight of ten. */
interface BenchRow {
  readonly mode: string;
  readonly device: "cpu";
  readonly threads: number;
  readonly runs: number;
  /** The first run, which makes the plan and what it keeps. */
  readonly first: number;
  readonly fastest: number;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}

/** Times each way to run a program, on one thread and on `most`; `ready` gives what runs it once. */
export function benched(
  ready: (mode: string) => () => void,
  inputs: "given" | "zeros",
  most: number,
  repeat: number | undefined,
  isJson: boolean,
): string {
  const counts = most > 1 ? [1, most] : [1];
  const rows = RUN_MODES.flatMap((mode) => counts.map((threads) => timed(mode, threads, ready(mode), repeat)));
  if (isJson) return JSON.stringify({ inputs, rows });
  const lines = rows.map(({ mode, threads, runs, first, fastest, median, p10, p90 }) => {
    const range = `median ${ms(median)} (${ms(p10)} to ${ms(p90)}), fastest ${ms(fastest)}, first ${ms(first)}`;
    return `${`${mode}, ${threads} thread${threads === 1 ? "" : "s"}`.padEnd(24)} ${range}, ${runs} runs`;
  });
  return `${lines.join("\n")}\nThe range has eight of ten runs; inputs: ${inputs}.`;
}

function timed(mode: string, threads: number, run: () => void, repeat: number | undefined): BenchRow {
  setNumThreads(threads);
  const once = (): number => {
    const start = performance.now();
    run();
    return performance.now() - start;
  };
  const first = once();
  const [later, start]: [number[], number] = [[], performance.now()];
  const isEnough = (): boolean =>
    repeat === undefined
      ? later.length >= MOST || (later.length >= FEWEST && performance.now() - start >= BUDGET)
      : later.length >= repeat;
  while (!isEnough()) later.push(once());
  later.sort((a, b) => a - b);
  const quantile = (share: number): number => later[Math.round((later.length - 1) * share)] as number;
  return {
    mode,
    device: "cpu",
    threads,
    runs: later.length,
    first,
    fastest: quantile(0),
    median: quantile(0.5),
    p10: quantile(0.1),
    p90: quantile(0.9),
  };
}

function ms(it: number): string {
  return `${it.toFixed(3)} ms`;
}
