/**
 * `npx tracefx bench`: how long a program takes in WebAssembly, by its plan and node by node, on one thread and on several; or on a GPU.
 *
 * @module
 */
import { RUN_MODES } from "../../../bindings/command.ts";
import { setNumThreads } from "../engine/engine.ts";

/** For how long a way of running is timed, in milliseconds, where nobody says how often. */
const BUDGET = 1000;
/** How often it runs at least, and at most, within that. */
const [FEWEST, MOST] = [3, 10_000];

type BenchDevice = "cpu" | "gpu";

/** What is timed. */
interface BenchAsked {
  readonly device: BenchDevice;
  /** The most threads of a run. */
  readonly most: number;
  /** How often it runs; nothing where time tells. */
  readonly repeat: number | undefined;
}

/** How long runs of one kind took, in milliseconds. The range from `p10` to `p90` has eight of ten. */
interface BenchRow {
  readonly mode: string;
  readonly device: BenchDevice;
  readonly threads: number;
  readonly runs: number;
  /** The first run, which makes the plan and what it keeps. */
  readonly first: number;
  readonly fastest: number;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}

/** Times each way to run a program, on one thread and on most; `ready` gives what runs it once, at once or later. */
export async function benched(
  ready: (mode: string) => Promise<() => void | Promise<void>>,
  inputs: "given" | "zeros",
  asked: BenchAsked,
  isJson: boolean,
): Promise<string> {
  const rows: BenchRow[] = [];
  for (const [mode, threads] of waysOf(asked)) rows.push(await timed(mode, threads, await ready(mode), asked));
  if (isJson) return JSON.stringify({ inputs, rows });
  const lines = rows.map(({ mode, device, threads, runs, first, fastest, median, p10, p90 }) => {
    const range = `median ${ms(median)} (${ms(p10)} to ${ms(p90)}), fastest ${ms(fastest)}, first ${ms(first)}`;
    const who = `${device === "cpu" ? "" : `${device}, `}${threads} thread${threads === 1 ? "" : "s"}`;
    return `${`${mode}, ${who}`.padEnd(24)} ${range}, ${runs} runs`;
  });
  return `${lines.join("\n")}\nThe range has eight of ten runs; inputs: ${inputs}.`;
}

/** Modes and numbers of threads. A GPU runs plans alone; its numbers are those beside the CPU's of a run without `--device`. */
function waysOf({ device, most }: BenchAsked): (readonly [mode: string, threads: number])[] {
  if (device === "gpu") return [[RUN_MODES[0], most]];
  const counts = most > 1 ? [1, most] : [1];
  return RUN_MODES.flatMap((mode) => counts.map((threads) => [mode, threads] as const));
}

async function timed(
  mode: string,
  threads: number,
  run: () => void | Promise<void>,
  { device, repeat }: BenchAsked,
): Promise<BenchRow> {
  setNumThreads(threads);
  const once = async (): Promise<number> => {
    const start = performance.now();
    const done = run();
    // Of a run that is done at once, waiting would be timed.
    if (done !== undefined) await done;
    return performance.now() - start;
  };
  const first = await once();
  const [later, start]: [number[], number] = [[], performance.now()];
  const isEnough = (): boolean =>
    repeat === undefined
      ? later.length >= MOST || (later.length >= FEWEST && performance.now() - start >= BUDGET)
      : later.length >= repeat;
  while (!isEnough()) later.push(await once());
  later.sort((a, b) => a - b);
  const quantile = (share: number): number => later[Math.round((later.length - 1) * share)] as number;
  return {
    mode,
    device,
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
