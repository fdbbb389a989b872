/**
 * Finding the nodes for which two backends differ: `torch.fx.passes.net_min_base`.
 *
 * @module
 */
import { MINIMIZER_OPTIONS, type MinimizeAnswer, type MinimizerOptions } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { Node } from "../graph/node.ts";
import { Tuple } from "../base/values.ts";
import { Interpreter } from "../fx/interpreter.ts";
import { deepCopy } from "../nn/deepCopy.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkFunction, checkList, checkOptions } from "../base/given.ts";
import { isCallable } from "./toolsCommon.ts";

const BACKENDS = ["runA", "runB", "compareFn"] as const;

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

/** How {@link NetMinimizer.minimize} searches. */
export interface MinimizerSettings extends Partial<MinimizerOptions> {
  /**
   * Whether the second backend is given what it made itself of earlier parts, as far as that was run: errors add up then.
   * Otherwise, and where nothing was made yet, both get what the module makes.
   */
  readonly accumulateError?: boolean;
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
 * Each gets copies of the inputs, so that what one writes is not there for the other.
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
    checkGraphModule("NetMinimizer", module);
    checkList("NetMinimizer", "sampleInput", sampleInput);
    for (const name of BACKENDS) checkFunction("NetMinimizer", name, backends?.[name]);
    const nInputs = module.graph.findNodes({ op: "placeholder" }).length;
    if (nInputs !== sampleInput.length) {
      const what = `Placeholder count (${nInputs}) does not match sample_input count (${sampleInput.length})`;
      throw fxError("InvalidArgument", what);
    }
    this.module = module;
    this.#sampleInput = sampleInput;
    this.#backends = backends;
  }

  /** Finds the nodes. */
  minimize(settings: MinimizerSettings = {}): Set<Node> {
    checkOptions("minimize", settings, ["accumulateError", ...MINIMIZER_OPTIONS]);
    const { accumulateError = false, ...options } = settings;
    this.#checkNames(options);
    const answers: boolean[] = [];
    const made = accumulateError ? new MadeValues(this.module, this.#sampleInput) : undefined;
    for (;;) {
      const call = { options: { options, answers } };
      const { answer, before } = runPass<MinimizeAnswer, GraphModule>(this.module, "minimize", call);
      if (answer.ask === null) return new Set(answer.culprits.map((it) => before[it] as Node));
      answers.push(
        this.#differs(
          answer.ask,
          answer.ask.map((it) => before[it] as Node),
          made,
        ),
      );
    }
  }

  /** Refuses names that no call has: nothing would be searched, and nothing be found. */
  #checkNames({ start, end, skipNodes = [], traverseMethod }: MinimizerSettings): void {
    checkList("minimize", "skipNodes", skipNodes);
    if (traverseMethod === "skip" && skipNodes.length === 0) {
      throw fxError("InvalidOption", "'skipNodes' can't be empty when 'traverseMethod' is 'skip'.");
    }
    const calls = new Set(Array.from(this.module.graph.nodes, (it) => (isCallable(it) ? it.name : undefined)));
    const stray = [start, end, ...skipNodes].find((it) => typeof it === "string" && !calls.has(it));
    if (stray !== undefined) throw fxError("InvalidOption", `the graph has no call named \`${stray}\``);
  }

  /** Runs these nodes on both backends, with the inputs that they have in the whole module. */
  #differs(places: readonly number[], nodes: readonly Node[], made: MadeValues | undefined): boolean {
    const how = { options: { nodes: places }, derive: true };
    const split = runPass<null, GraphModule>(this.module, "minimize_submodule", how).module;
    const part = split.getSubmodule("minimize") as GraphModule;
    const find = () => {
      const inputs = new InputsOf(split).find(this.#sampleInput);
      return [inputs, inputs] as const;
    };
    const [forA, forB] = made?.inputsOf(part) ?? find();
    const { runA, runB, compareFn } = this.#backends;
    try {
      // A backend may write to what it is given, and the other must not see that.
      const [a, b] = [runA(part, deepCopy(forA)), runB(part, deepCopy(forB))];
      made?.store(part, a, b);
      const differs = !compareFn(a, b);
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
    this.run(...deepCopy(sampleInput));
    return this.#inputs;
  }

  override callModule(...call: Parameters<Interpreter["callModule"]>): unknown {
    if (call[0] === "minimize") this.#inputs = deepCopy(call[1]);
    return super.callModule(...call);
  }
}

/** What the backends made of the inputs and of each node that was run, by the names of the nodes. */
class MadeValues {
  readonly #values = new Map<string, readonly [unknown, unknown]>();

  constructor(module: GraphModule, sampleInput: readonly unknown[]) {
    const inputs = module.graph.findNodes({ op: "placeholder" });
    for (const [at, it] of inputs.entries()) this.#values.set(it.name, [sampleInput[at], sampleInput[at]]);
  }

  /** The inputs of a part for both backends, where all of them were made. */
  inputsOf(part: GraphModule): readonly [readonly unknown[], readonly unknown[]] | undefined {
    const found = part.graph.findNodes({ op: "placeholder" }).map((it) => this.#values.get(it.name));
    if (found.includes(undefined)) return undefined;
    return [found.map((it) => it?.[0]), found.map((it) => it?.[1])];
  }

  store(part: GraphModule, a: unknown, b: unknown): void {
    const result = part.graph.outputNode()?.args[0];
    if (result instanceof Node) {
      this.#values.set(result.name, [a, b]);
    } else if (result instanceof Tuple) {
      const [ofA, ofB] = [a as Iterable<unknown>, b as Iterable<unknown>].map((it) => Array.from(it));
      for (const [at, it] of Array.from(result).entries())
        if (it instanceof Node) this.#values.set(it.name, [ofA?.[at], ofB?.[at]]);
    }
  }
}
