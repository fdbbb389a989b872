/**
 * Finding the nodes for which two backends differ: `torch.fx.passes.net_min_base`.
 *
 * @module
 */
import type { MinimizeAnswer, MinimizerOptions } from "../bindings/passes.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Node } from "../graph/node.ts";
import { Interpreter } from "../interpret/interpreter.ts";
import { runPass } from "../rewrite/bridge.ts";

/** Runs a module on a backend. */
export type RunBackend = (module: GraphModule, inputs: readonly unknown[]) => unknown;

/** The two backends, and when their results are the same. */
export interface MinimizerBackends {
  /** The backend that is right. */
  readonly runA: RunBackend;
  /** The one that is looked into. */
  readonly runB: RunBackend;
  /** Whether the results are the same. */
  readonly compareFn: (a: unknown, b: unknown) => boolean;
}

/** What one run told. */
export interface MinimizerReport {
  /** The nodes that were run. */
  readonly nodes: readonly Node[];
  /** Whether the backends differed. */
  readonly differs: boolean;
  /** What a backend threw. */
  readonly error?: unknown;
}

/**
 * Finds the nodes for which two backends differ: runs parts of a module on both and compares. A backend that throws differs.
 *
 * @example
 * ```ts
 * const minimizer = new NetMinimizer(gm, [x], { runA, runB, compareFn: (a, b) => String(a) === String(b) });
 * minimizer.minimize({ traverseMethod: "binary" }); // the set of culprits
 * ```
 */
export class NetMinimizer {
  readonly module: GraphModule;
  /** What each run told, in order. */
  readonly reports: MinimizerReport[] = [];
  readonly #sampleInput: readonly unknown[];
  readonly #backends: MinimizerBackends;

  constructor(module: GraphModule, sampleInput: readonly unknown[], backends: MinimizerBackends) {
    this.module = module;
    this.#sampleInput = sampleInput;
    this.#backends = backends;
  }

  /** Finds the nodes. */
  minimize(options: Partial<MinimizerOptions> = {}): Set<Node> {
    const answers: boolean[] = [];
    for (;;) {
      const call = { options: { options, answers } };
      const { answer, before } = runPass<MinimizeAnswer, GraphModule>(this.module, "minimize", call);
      if (answer.ask === null) return new Set(answer.culprits.map((it) => before[it] as Node));
      answers.push(
        this.#differs(
          answer.ask,
          answer.ask.map((it) => before[it] as Node),
        ),
      );
    }
  }

  /** Runs these nodes on both backends, with the inputs that they have in the whole module. */
  #differs(places: readonly number[], nodes: readonly Node[]): boolean {
    const how = { options: { nodes: places }, derive: true };
    const split = runPass<null, GraphModule>(this.module, "minimize_submodule", how).module;
    const part = split.getSubmodule("minimize") as GraphModule;
    const inputs = new InputsOf(split).find(this.#sampleInput);
    const { runA, runB, compareFn } = this.#backends;
    try {
      const differs = !compareFn(runA(part, inputs), runB(part, inputs));
      this.reports.push({ nodes, differs });
      return differs;
    } catch (error) {
      this.reports.push({ nodes, differs: true, error });
      return true;
    }
  }
}

/** Notes what the part is called with. */
class InputsOf extends Interpreter {
  #inputs: readonly unknown[] = [];

  find(sampleInput: readonly unknown[]): readonly unknown[] {
    this.run(...sampleInput);
    return this.#inputs;
  }

  override callModule(...call: Parameters<Interpreter["callModule"]>): unknown {
    if (call[0] === "minimize") this.#inputs = call[1];
    return super.callModule(...call);
  }
}
