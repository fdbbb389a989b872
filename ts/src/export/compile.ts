/**
 * Graph modules that the engine runs whole: `torch.compile`.
 *
 * The first call of a kind exports the graph, and makes a program of it on the tensors of the module themselves. What that takes as constant
 * (numbers, settings of modules, the graph) is compared in every call, so that none uses what is so no more.
 *
 * @module
 */
import { PRECISIONS } from "../../../bindings/command.ts";
import { fxError, InputError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { generation } from "../engine/engine.ts";
import { autocastDtype } from "../engine/modes.ts";
import { currentRecorder } from "../engine/recorder.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { placeKeywords } from "../graph/keywords.ts";
import { recorderOf } from "../record/record.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { CallInputs, CompiledCall } from "./compiledCall.ts";
import { ModuleFacts, refuseHostCode } from "./moduleFacts.ts";
import type { PlanReport } from "./programModule.ts";

/** How {@link compile} compiles. */
export interface CompileOptions {
  /**
   * What may change in the numbers. `"fast"`, the default, may change the last bits of results: batch normalisations are folded into
   * the weights of convolutions, and sums have other orders. `"strict"` gives what `gm.forward` gives, to the bit.
   */
  readonly precision?: (typeof PRECISIONS)[number];
}

/** So many kinds of calls are remembered, each with packed weights of its own; the one that was not used for longest goes first. */
const MAX_CALLS = 8;

/** A graph module that the engine runs whole. It is called as the module is, with what `gm.forward` takes. */
export interface CompiledModule extends Disposable {
  (...args: unknown[]): unknown;
  /** Calls it; the module itself is the same function. */
  forward(...args: unknown[]): unknown;
  /**
   * Calls it, and writes the tensors that it gives to these, in their order: of the same dtypes and sizes, each in memory of its own. One
   * that is repeated allocates nothing.
   *
   * @example
   * ```ts
   * const logits = torch.empty(1, 1000);
   * for (const image of images) run.runInto([image], [logits]);
   * ```
   */
  runInto(args: readonly unknown[], outputs: readonly Tensor[]): unknown;
  /** What a call with these is compiled to. Printed, it is a table. */
  explain(args: readonly unknown[]): PlanReport;
  /** Gives the engine's memory back. */
  dispose(): void;
}

/**
 * A graph module as something that the engine runs whole, by a compiled plan: `torch.compile`. It takes what the module takes and gives the
 * same; a call crosses to the engine once, where `gm.forward` does for each node.
 *
 * The tensors are those of the module: a change of a parameter is seen by the next call, be it in place or by another tensor, and buffers that
 * the graph writes are written. Edits of the graph, settings of modules (`gm.eval()`) and numbers among the arguments are seen, too: each call
 * of another kind is compiled when it comes first. Sizes that change are dynamic from the second time on, where the graph allows it.
 *
 * A graph that calls JavaScript is refused, by the node and the line where it was traced: a function that was given to `wrap`, a module of
 * a class of one's own that was not traced into, a `forward` of one's own, hooks. `gm.forward` runs it. An operator of `torch.library` is
 * called. Inputs of other classes than tensors, numbers and containers are refused, since a change in one would not be seen.
 *
 * @example
 * ```ts
 * const gm = symbolicTrace(model);
 * using run = compile(gm);
 * const logits = run(image) as Tensor;
 * ```
 */
export function compile(module: GraphModule, options: CompileOptions = {}): CompiledModule {
  checkGraphModule("compile", module);
  checkOptions("compile", options, ["precision"]);
  const { precision = PRECISIONS[0] } = options;
  checkGiven("compile", PRECISIONS.includes(precision), `options.precision, one of ${PRECISIONS.join(", ")}`);
  refuseHostCode(module);
  const calls = new CompiledCalls(module, precision);
  const forward = (...args: unknown[]): unknown => {
    // Whoever traces or exports sees the nodes.
    if (recorderOf(args) !== undefined || currentRecorder() !== undefined) return module.forward(...args);
    return calls.run(args, (call, inputs) => call.run(inputs));
  };
  return Object.assign((...args: unknown[]) => forward(...args), {
    forward,
    runInto: (args: readonly unknown[], outputs: readonly Tensor[]): unknown => {
      checkList("runInto", "args", args);
      return calls.run(args, (call, inputs) => call.runInto(inputs, outputs));
    },
    explain: (args: readonly unknown[]): PlanReport => {
      checkList("explain", "args", args);
      return calls.run(args, (call, inputs) => call.explain(inputs));
    },
    dispose: () => calls.dispose(),
    [Symbol.dispose]: () => calls.dispose(),
  });
}

/** What a module is compiled to, for each kind of call. */
class CompiledCalls {
  readonly #module: GraphModule;
  readonly #precision: (typeof PRECISIONS)[number];
  /** Those used last in front. */
  #calls: CompiledCall[] = [];
  #facts: ModuleFacts | undefined;
  /** Which of the engine's lives the programs belong to. */
  #generation = generation();
  #isDisposed = false;

  constructor(module: GraphModule, precision: (typeof PRECISIONS)[number]) {
    this.#module = module;
    this.#precision = precision;
  }

  /** Does something with what a call with these is compiled to. */
  run<T>(args: readonly unknown[], use: (call: CompiledCall, inputs: CallInputs) => T): T {
    if (this.#isDisposed) throw fxError("Disposed", "the compiled module was disposed", { help: "compile(gm) again" });
    if (autocastDtype() !== undefined) {
      throw fxError("NotImplemented", "a compiled module is called outside of autocast", {
        help: "put the context into the function that is traced, or call gm.forward(...)",
      });
    }
    const { graph } = this.#module;
    const inputs = new CallInputs(graph, graph.processInputs(...placeKeywords(graph, args)));
    // Of what an engine held that was made anew nothing is left, and to ask for it is an error.
    if (this.#generation !== generation() || this.#facts?.hold() !== true) this.#begin();
    const call = this.#callFor(inputs);
    try {
      return use(call, inputs);
    } catch (error) {
      if (!call.isDynamic || !isRefusalOfSizes(error)) throw error;
      return use(this.#compiled(inputs, sizesOf(inputs)), inputs);
    }
  }

  dispose(): void {
    this.#isDisposed = true;
    this.#forget();
  }

  #begin(): void {
    this.#forget();
    this.#facts = undefined;
    this.#generation = generation();
    refuseHostCode(this.#module);
  }

  #forget(): void {
    for (const it of this.#calls) it[Symbol.dispose]();
    this.#calls = [];
  }

  #callFor(inputs: CallInputs): CompiledCall {
    const fitting = this.#calls.filter((it) => it.isFor(inputs));
    // A program for many sizes may refuse those that one was made for.
    const found = fitting.find((it) => !it.isDynamic) ?? fitting[0];
    if (found !== undefined) {
      if (found !== this.#calls[0]) this.#calls = [found, ...this.#calls.filter((it) => it !== found)];
      return found;
    }
    for (const it of this.#calls) {
      const sizes = it.sizesBeside(inputs);
      if (sizes === undefined) continue;
      try {
        return this.#compiled(inputs, sizes);
      } catch {
        // A graph may want to know a size.
        break;
      }
    }
    return this.#compiled(inputs, sizesOf(inputs));
  }

  #compiled(inputs: CallInputs, sizes: readonly (readonly (number | undefined)[])[]): CompiledCall {
    const res = new CompiledCall(this.#module, inputs, sizes, this.#precision);
    // Tensors have moved to the engine's memory only now.
    this.#facts ??= new ModuleFacts(this.#module);
    this.#calls.unshift(res);
    for (const it of this.#calls.splice(MAX_CALLS)) it[Symbol.dispose]();
    return res;
  }
}

/**
 * Whether a program refuses the sizes that it is called with. What it asks of sizes is known to the engine alone, which tells before any
 * node has run; an error of an operator of the user's has a cause, and may be of any kind.
 */
function isRefusalOfSizes(error: unknown): boolean {
  if (!(error instanceof InputError) || error.node !== undefined || error.cause !== undefined) return false;
  return error.kind === "InputShape" || error.kind === "InputStructure";
}

function sizesOf({ tensors }: CallInputs): (readonly number[])[] {
  return tensors.map((it) => it.shape);
}
