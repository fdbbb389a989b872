/**
 * An operator of one's own: its schema, and the functions that were given for it.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { call, isLoaded } from "../engine/engine.ts";
import { layoutOf } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import { fxError } from "../base/errors.ts";
import { partsOf } from "../export/ofGraphModule.ts";
import { joinArguments } from "../base/naming.ts";
import type { SchemaParameter } from "../functions/schemas.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { Tensor } from "../tensor/tensor.ts";
import { encodeProgram } from "../export/encoding/program.ts";
import { asFake, underFakes, withoutData } from "./fake.ts";
import { numberOf } from "./host.ts";

/** A function that computes an operator, or says what its results are: the arguments are those of the schema, the ones that
 * can only be given by name in an object at the end. */
export type OperatorFunction = (...args: never[]) => unknown;

/** What a backward pass remembers of a call: `ctx` of `torch.library.register_autograd`. */
export interface BackwardContext {
  /** Keeps tensors for the backward pass, where `savedTensors` has them. */
  saveForBackward(...tensors: readonly (Tensor | null)[]): void;
  readonly savedTensors: readonly (Tensor | null)[];
  /** Whatever else the backward pass wants to know. */
  [name: string]: unknown;
}

/** Notes in the context what the backward pass needs: the arguments of the call, and its result, or results in an array. */
export type SetupContext = (ctx: BackwardContext, inputs: readonly unknown[], output: unknown) => void;

/** The gradients of the arguments from those of the results: one, or as many as there are arguments, null where none flows. */
export type Backward = (ctx: BackwardContext, ...grads: never[]) => unknown;

type Run = (...args: unknown[]) => unknown;

/** An operator that was defined. */
export class Definition {
  /** The whole schema, such as `mylib::foo(Tensor x) -> Tensor`. */
  readonly schema: string;
  /** The qualified name, such as `torch.ops.mylib.foo.default`. */
  readonly target: string;
  readonly parameters: readonly SchemaParameter[];
  readonly nReturns: number;
  /** Whether it may be defined again: `customOp` of one name twice means the second. */
  readonly isReplaceable: boolean;
  #kernel: number | undefined;
  #shape: number | undefined;
  #backward: number | undefined;
  #body: GraphModule | undefined;

  constructor(
    schema: string,
    target: string,
    parameters: readonly SchemaParameter[],
    nReturns: number,
    isReplaceable: boolean,
  ) {
    this.schema = schema;
    this.target = target;
    this.parameters = parameters;
    this.nReturns = nReturns;
    this.isReplaceable = isReplaceable;
  }

  /** The name as errors have it: `mylib.foo.default`. */
  get name(): string {
    return this.target.slice("torch.ops.".length);
  }

  get hasKernel(): boolean {
    return this.#kernel !== undefined || this.#body !== undefined;
  }

  /** Whether it is made of others, which then say its shapes and gradients. */
  get isComposite(): boolean {
    return this.#body !== undefined;
  }

  get hasShape(): boolean {
    return this.#shape !== undefined;
  }

  get hasBackward(): boolean {
    return this.#backward !== undefined;
  }

  setKernel(kernel: OperatorFunction): void {
    this.#body = undefined;
    this.#kernel = numberOf(`the kernel of ${this.name}`, (values) => this.#run(kernel as Run, values));
    this.install();
  }

  setBody(body: GraphModule): void {
    // What is no graph of operators is refused before anything changes.
    partsOf(body);
    this.#kernel = undefined;
    this.#body = body;
    this.install();
  }

  setShape(shape: OperatorFunction): void {
    this.#shape = numberOf(`the fake implementation of ${this.name}`, (values) =>
      underFakes(() => this.#run(shape as Run, values.map(asFake)).map(withoutData)),
    );
    this.install();
  }

  setBackward(backward: Backward, setupContext: SetupContext | undefined): void {
    this.#backward = numberOf(`the backward of ${this.name}`, ([grads, inputs, results]) => {
      const lists = [grads, inputs, results] as readonly (readonly EngineValue[])[];
      return [this.#differentiate(backward as Run, setupContext as Run | undefined, lists)];
    });
    this.install();
  }

  /** Tells the engine, if it is there, what the operator is now. */
  install(): void {
    if (!isLoaded()) return;
    const body = this.#body;
    if (body !== undefined) {
      const { bytes } = encodeProgram(partsOf(body), layoutOf);
      call((engine) => {
        const none = new engine.Storages();
        try {
          engine.define_composite_operator(this.schema, bytes, none);
        } finally {
          none.free();
        }
      });
      return;
    }
    call((engine) => engine.define_operator(this.schema, this.#kernel, this.#shape, this.#backward));
  }

  #run(body: Run, values: readonly unknown[]): readonly unknown[] {
    const nPositional = this.parameters.filter((it) => it.kind !== "keyword").length;
    const named = this.parameters.slice(nPositional).map((it, at) => [it.name, values[nPositional + at]] as const);
    const given = joinArguments({ args: values.slice(0, nPositional), kwargs: Object.fromEntries(named) });
    const result = body(...given);
    if (result instanceof Promise) {
      throw fxError("SchemaMismatch", `${this.name} gives a promise`, { help: "operators are not asynchronous" });
    }
    if (this.nReturns === 1) return [result];
    if (result === undefined || result === null) return [];
    return this.nReturns > 1 && Array.isArray(result) ? result : [result];
  }

  #differentiate(
    backward: Run,
    setupContext: Run | undefined,
    [grads = [], inputs = [], results = []]: readonly (readonly EngineValue[])[],
  ): readonly unknown[] {
    let saved: readonly (Tensor | null)[] = [];
    const ctx = {
      saveForBackward: (...tensors: readonly (Tensor | null)[]) => {
        saved = tensors;
      },
      get savedTensors() {
        return saved;
      },
    };
    setupContext?.(ctx, inputs, this.nReturns === 1 ? results[0] : results);
    // As in PyTorch, a result that nothing came back to has a gradient of zeros.
    const whole = grads.map((it, at) =>
      it === null && results[at] instanceof Tensor ? callOperator("aten.zeros_like", [results[at]]) : it,
    );
    const given = backward(ctx, ...whole);
    if (Array.isArray(given) && given.length === inputs.length) return given;
    if (inputs.length === 1) return [given];
    const count = Array.isArray(given) ? given.length : 1;
    throw fxError(
      "SchemaMismatch",
      `the backward of ${this.name} gives ${count} gradients for ${inputs.length} arguments`,
      {
        help: "give one gradient for each argument of the schema, null where none flows",
      },
    );
  }
}
