/** The tutorial on a profiling interpreter: how much of the time of a run each node takes. */
import { GraphModule, init, Interpreter, nn, type Node, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

const mean = (times: readonly number[]): number => times.reduce((sum, it) => sum + it, 0) / times.length;

class ProfilingInterpreter extends Interpreter {
  /** The time of each whole run, in milliseconds. */
  readonly totalRuntimes: number[] = [];
  /** The times of each node, in milliseconds. */
  readonly runtimes = new Map<Node, number[]>();

  constructor(module: nn.Module) {
    super(module instanceof GraphModule ? module : symbolicTrace(module));
  }

  override run(...args: readonly unknown[]): unknown {
    const start = performance.now();
    const result = super.run(...args);
    this.totalRuntimes.push(performance.now() - start);
    return result;
  }

  override runNode(node: Node): unknown {
    const start = performance.now();
    const result = super.runNode(node);
    const times = this.runtimes.get(node) ?? [];
    times.push(performance.now() - start);
    this.runtimes.set(node, times);
    return result;
  }

  /** The nodes with their mean times and their share of the run, the longest first. */
  summary(): { op: Node; ms: number; percent: number }[] {
    const total = mean(this.totalRuntimes);
    return Array.from(this.runtimes, ([op, times]) => ({
      op,
      ms: mean(times),
      percent: (100 * mean(times)) / total,
    })).toSorted((a, b) => b.ms - a.ms);
  }
}

class Net extends nn.Module {
  conv = new nn.Conv2d(3, 32, 3, { padding: 1 });
  relu = new nn.ReLU();
  fc = new nn.Linear(32, 10);
  override forward(x: Tensor): Tensor {
    return this.fc.forward(this.relu.forward(this.conv.forward(x)).mean([2, 3]));
  }
}

const interpreter = new ProfilingInterpreter(new Net().eval());
const input = torch.randn(1, 3, 64, 64);
for (let run = 0; run < 3; run++) interpreter.run(input);
const summary = interpreter.summary();
const isSorted = summary.every(({ ms }, at) => ms <= (summary[at - 1]?.ms ?? ms));
console.log(summary.length, "nodes, the longest first:", isSorted);
const share = summary.reduce((sum, { percent }) => sum + percent, 0);
console.log("together no more than the run:", share <= 100);
