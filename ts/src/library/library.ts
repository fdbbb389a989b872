/**
 * `torch.library`: operators of one's own, and what the engine calls of them.
 *
 * @module
 */
import { onStart } from "../engine/engine.ts";
import { fxError } from "../base/errors.ts";
import { overloadOf } from "../torch/operators.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { entering } from "../record/stack.ts";
import { symbolicTrace } from "../trace/tracer.ts";
import { addDefinition, allDefinitions, definitionOf, removeDefinition } from "./definition.ts";
import { installFakeMethods } from "./fake.ts";
import { installHost } from "./host.ts";
import type { Backward, Definition, OperatorFunction, SetupContext } from "./operator.ts";
import type { NamedTarget } from "../graph/target.ts";
import { checkOptions } from "../base/given.ts";

/** What a function of `torch.library.impl` is: it computes the operator, or says what the operator is made of. */
export type DispatchKey = "cpu" | "CPU" | "default" | "CompositeExplicitAutograd" | "CompositeImplicitAutograd";

/** How `torch.library.registerAutograd` remembers a call. */
export interface AutogradOptions {
  readonly setupContext?: SetupContext;
}

/** How `torch.library.customOp` defines an operator. */
export interface CustomOpOptions {
  /** The arguments and results, such as `(Tensor x, *, float alpha=1.0) -> Tensor`; `Tensor(a!) x` is written to. */
  readonly schema: string;
}

/**
 * Defines an operator by its name and schema: `torch.library.define`. What computes it is said by `torch.library.impl`.
 *
 * @example
 * ```ts
 * torch.library.define("mylib::scale_add", "(Tensor x, Tensor y, float alpha=2.0) -> Tensor");
 * torch.library.impl("mylib::scale_add", "cpu", (x: Tensor, y: Tensor, alpha: number) => x.mul(alpha).add(y));
 * torch.library.registerFake("mylib::scale_add", (x: Tensor) => torch.emptyLike(x));
 * torch.ops.mylib.scale_add(x, y, { alpha: 3 });
 * ```
 * @throws `InvalidOption` where the name is none or taken; `SchemaMismatch` where the schema is none.
 */
export function define(qualname: string, schema: string): void {
  begin();
  const definition = addDefinition(qualname, schema, false);
  try {
    definition.install();
  } catch (error) {
    // The engine knows operators that are not known here.
    removeDefinition(definition);
    throw error;
  }
}

/**
 * Says how an operator is computed: `torch.library.impl`. The function is given the arguments of the schema with their
 * defaults, those that can only be given by name in an object at the end, and gives the result, an array of several, or
 * nothing; what it gives is checked against the schema and the fake implementation. A float that is whole comes as a `Float`:
 * tensors that are multiplied with it become floats as in PyTorch, and JavaScript computes with it as with a number.
 *
 * Under `CompositeImplicitAutograd` it says what the operator is made of instead: it is traced once, may call operators by
 * their own names only (`torch.ops.aten.mul.Tensor`), and decomposed programs contain these.
 *
 * @throws `InvalidOption` where there is no such operator, or it has been given one already.
 */
export function impl(qualname: string, key: DispatchKey, run: OperatorFunction | GraphModule): void {
  const definition = definitionOf(qualname);
  if (definition.hasKernel) throw taken(definition, "a kernel");
  switch (key) {
    case "cpu":
    case "CPU":
    case "default":
    case "CompositeExplicitAutograd":
      definition.setKernel(run as OperatorFunction);
      return;
    case "CompositeImplicitAutograd":
      if (definition.hasShape || definition.hasBackward) throw composite(definition);
      definition.setBody(run instanceof GraphModule ? run : symbolicTrace(run as never));
      return;
    default:
      throw fxError("InvalidOption", `there is no kernel for ${String(key satisfies never)}`, {
        help: 'the keys are "cpu", "default" and "CompositeImplicitAutograd"',
      });
  }
}

/**
 * Says what an operator gives without computing it: `torch.library.register_fake`. The function is called with
 * tensors that have no data, and gives tensors of the dtype and sizes that the results have: `torch.emptyLike(x)`,
 * `x.newEmpty([x.shape[0], 2])`. What it calls with such tensors computes nothing; their sizes may be symbols. Shape propagation needs it, and where it is there, results are checked against it. An operator without
 * results needs none.
 *
 * @throws `InvalidOption` where there is no such operator, or it has been given one already.
 */
export function registerFake(qualname: string, fake: OperatorFunction): void {
  const definition = definitionOf(qualname);
  if (definition.hasShape) throw taken(definition, "a fake implementation");
  if (definition.isComposite) throw composite(definition);
  definition.setShape(fake);
}

/**
 * Says how gradients go back through an operator: `torch.library.register_autograd`. {@link differentiateOperator} and the
 * gradients of operators that are made of it ask for it.
 *
 * @example
 * ```ts
 * torch.library.registerAutograd("mylib::sin", (ctx, grad: Tensor) => grad.mul((ctx.savedTensors[0] as Tensor).cos()), {
 *   setupContext: (ctx, [x]) => ctx.saveForBackward(x as Tensor),
 * });
 * ```
 * @throws `InvalidOption` where there is no such operator, or it has been given one already.
 */
export function registerAutograd(qualname: string, backward: Backward, options: AutogradOptions = {}): void {
  checkOptions("registerAutograd", options, ["setupContext"]);
  const definition = definitionOf(qualname);
  if (definition.hasBackward) throw taken(definition, "a gradient");
  if (definition.isComposite) throw composite(definition);
  definition.setBackward(backward, options.setupContext);
}

/** An operator that `torch.library.customOp` made: it can be called, and told more of. */
export interface CustomOp extends NamedTarget {
  (...args: unknown[]): unknown;
  /** As {@link registerFake}; the last one counts. */
  registerFake(fake: OperatorFunction): this;
  /** As `torch.library.registerAutograd`; the last one counts. */
  registerAutograd(backward: Backward, options?: AutogradOptions): this;
  /** Another function that computes it. */
  registerKernel(kernel: OperatorFunction): this;
}

/**
 * Makes an operator of a function: `torch.library.custom_op`. The operator is called by what comes back, or as
 * `torch.ops.mylib.foo`. A name that `customOp` defined before gets a new operator.
 *
 * @example
 * ```ts
 * const accumulate = torch.library.customOp("mylib::accumulate_", (acc: Tensor, x: Tensor) => void acc.add_(x), {
 *   schema: "(Tensor(a!) acc, Tensor x) -> ()",
 * });
 * accumulate(total, x);
 * ```
 * @throws As {@link define}.
 */
export function customOp(qualname: string, kernel: OperatorFunction, options: CustomOpOptions): CustomOp {
  checkOptions("customOp", options, ["schema"]);
  begin();
  const definition = addDefinition(qualname, options.schema, true);
  definition.setKernel(kernel);
  const overload = overloadOf(definition.target);
  const res = Object.assign(entering((...args: unknown[]) => overload(...args)) as CustomOp, {
    registerFake: (fake: OperatorFunction) => (definition.setShape(fake), res),
    registerAutograd: (backward: Backward, how: AutogradOptions = {}) => {
      checkOptions("registerAutograd", how, ["setupContext"]);
      definition.setBackward(backward, how.setupContext);
      return res;
    },
    registerKernel: (other: OperatorFunction) => (definition.setKernel(other), res),
  });
  Object.defineProperty(res, "target", { value: definition.target, enumerable: true });
  return res;
}

let hasBegun = false;

/** The engine hears of operators when it begins; before the first one there is nothing to tell. */
function begin(): void {
  if (hasBegun) return;
  hasBegun = true;
  installFakeMethods();
  onStart(() => {
    installHost();
    for (const definition of allDefinitions()) definition.install();
  });
}

function composite({ name }: Definition) {
  return fxError("InvalidOption", `${name} is made of other operators, which say its shapes and gradients`, {
    op: name,
    help: 'give it a kernel under "cpu" to say them yourself',
  });
}

function taken({ name }: Definition, what: string) {
  return fxError("InvalidOption", `there's already ${what} registered for ${name}`, { op: name });
}
