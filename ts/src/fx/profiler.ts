/**
 * Times of nodes: the profiling interpreter of torch.fx's tutorial.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import type { GraphModule } from "./graphModule.ts";
import type { Node } from "../graph/node.ts";
import { formatTable } from "../graph/textTable.ts";
import { Interpreter, type RunOptions } from "./interpreter.ts";
import { checkOptions } from "../base/given.ts";

/** How long a node took, over all runs. */
export interface NodeTiming {
  readonly node: Node;
  /** How often it ran. */
  readonly runs: number;
  /** The average time of a run, in milliseconds. */
  readonly mean: number;
  /** Its share of the average time of the graph, in percent. */
  readonly percent: number;
}

/** How a profile is written. */
export interface ProfileOptions {
  /** Whether the slowest nodes come first, as they do by default; otherwise they stand in the order in which they ran. */
  readonly sort?: boolean;
}

/** How a profile is made. */
export interface ProfilerOptions {
  /** A clock in milliseconds; by default the host's finest. */
  readonly now?: () => number;
}

/**
 * Runs a graph and times its nodes.
 *
 * @example
 * ```ts
 * const profiler = new ProfilingInterpreter(symbolicTrace(model));
 * for (let count = 0; count < 10; count++) profiler.run(image);
 * console.log(profiler.summary());
 * ```
 */
export class ProfilingInterpreter extends Interpreter {
  readonly #now: () => number;
  readonly #times = new Map<Node, { runs: number; total: number }>();
  readonly #whole = { runs: 0, total: 0 };

  constructor(module: GraphModule, options: ProfilerOptions = {}) {
    super(module, { disposeValues: new.target === ProfilingInterpreter });
    checkOptions("ProfilingInterpreter", options, ["now"]);
    this.#now = options.now ?? (() => performance.now());
  }

  /** Runs the graph and adds the time that it took. */
  override runWith(args: readonly unknown[], options?: RunOptions): unknown {
    const start = this.#now();
    const value = super.runWith(args, options);
    this.#whole.total += this.#now() - start;
    this.#whole.runs += 1;
    return value;
  }

  /** Runs one node and adds the time that it took. */
  override runNode(node: Node): unknown {
    const start = this.#now();
    const value = super.runNode(node);
    const time = this.#now() - start;
    const times = this.#times.get(node);
    if (times === undefined) {
      this.#times.set(node, { runs: 1, total: time });
    } else {
      times.runs += 1;
      times.total += time;
    }
    return value;
  }

  /** The times of all nodes that ran. */
  timings(options: ProfileOptions = {}): NodeTiming[] {
    checkOptions("timings", options, ["sort"]);
    const { sort = true } = options;
    const whole = this.#whole.total / this.#whole.runs;
    const res = Array.from(this.#times, ([node, { runs, total }]) => {
      const mean = total / runs;
      return { node, runs, mean, percent: whole > 0 ? (mean / whole) * 100 : 0 };
    });
    return sort ? res.toSorted((a, b) => b.mean - a.mean) : res;
  }

  /** The times of all nodes as a table. */
  summary(options: ProfileOptions = {}): string {
    checkOptions("summary", options, ["sort"]);
    if (this.#whole.runs === 0) {
      throw fxError("InvalidOption", "there is nothing to sum up before the first run", { help: "run(...) it first" });
    }
    const rows = this.timings(options).map(({ node, mean, percent }) => [
      node.op,
      node.name,
      mean.toFixed(4),
      percent.toFixed(2),
    ]);
    return formatTable(["Op type", "Op", "Average runtime (ms)", "Pct total runtime"], rows);
  }
}

answerMembersOf(ProfilingInterpreter);
