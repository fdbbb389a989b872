/**
 * The functions and methods that are operators, as the registry has them.
 *
 * This folder has what PyTorch writes in Python on top of them, too (`functional`, `composed.ts`). The object `torch`, which
 * leads to everything, is `torch.ts` above it.
 *
 * @module
 */
import {
  type FftFunctions,
  FUNCTIONS,
  type FunctionNamespace,
  type LinalgFunctions,
  type NnFunctions,
  PLACES,
  type SpecialFunctions,
  type TorchFunctions,
} from "../../../bindings/functions.ts";
import { ATTRIBUTES } from "../../../bindings/members.ts";
import { METHODS, SELF_POSITIONS } from "../../../bindings/methods.ts";
import { callOperator } from "../engine/dispatch.ts";
import { defineMember, defineMethod } from "../functions/tensorMembers.ts";
import { Tensor } from "../tensor/tensor.ts";
// oxlint-disable-next-line import/no-unassigned-import -- its functions must be in the table before those of this module
import "./functional/index.ts";
import { camelCase, splitArguments } from "../base/naming.ts";
import { addResolver, defineFunction, functionOf } from "../functions/table.ts";

/** A function of the table, whatever its arguments are. */
export type AnyFunction = (...args: unknown[]) => unknown;

/** Calls an operator with Python's arguments. Functions that make tensors may be asked for gradients. */
function run(operator: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
  if (kwargs["requires_grad"] === undefined) return callOperator(operator, args, kwargs);
  const { requires_grad: wanted, ...rest } = kwargs;
  const made = callOperator(operator, args, rest);
  return made instanceof Tensor ? made.requiresGrad_(wanted === true) : made;
}

function defineOperator(target: string, operator: string): AnyFunction {
  return defineFunction(target, (...given: unknown[]) => {
    const { args, kwargs } = splitArguments(given);
    return run(operator, args, kwargs);
  });
}

function namespaceOf<T>(name: FunctionNamespace): T {
  const [target, prefix] = PLACES[name];
  const define = (it: string): AnyFunction => {
    // Some are functions of `torch.nn.functional` too, which has them with its own parameter lists.
    return functionOf(`${target}${it}`) ?? defineOperator(`${target}${it}`, `aten.${prefix}${it}`);
  };
  const members = FUNCTIONS[name].map((it) => [camelCase(it), define(it)] as const);
  return Object.freeze(Object.fromEntries(members)) as T;
}

/** The functions that are operators, by namespace and JavaScript's spelling of their names. */
export const OPERATORS = {
  torch: namespaceOf<TorchFunctions>("torch"),
  special: namespaceOf<SpecialFunctions>("special"),
  linalg: namespaceOf<LinalgFunctions>("linalg"),
  fft: namespaceOf<FftFunctions>("fft"),
  nn: namespaceOf<NnFunctions>("nn"),
} as const;

/** The qualified name of an operator, with or without its overload. Those that take graphs are functions of their own. */
const OPERATOR = /^torch\.ops\.(?!higher_order\.)\w+\.\w+(?:\.\w+)?$/;

const overloads = new Map<string, AnyFunction>();

/** The function of an operator by its qualified name: `torch.ops.aten.add`, or `torch.ops.aten.add.Tensor`. */
export function overloadOf(target: string): AnyFunction {
  const known = overloads.get(target);
  if (known !== undefined) return known;
  const made = defineOperator(target, target.slice("torch.ops.".length));
  overloads.set(target, made);
  return made;
}

/** Puts the operators on tensors that are methods or attributes, and lets graphs find all others by name. */
export function installOperators(): void {
  for (const name of METHODS) {
    const at = SELF_POSITIONS[name] ?? 0;
    defineMethod(camelCase(name), name, (self, args, kwargs) => {
      // With fewer arguments by position, those before the tensor have been given by name, and so it is too.
      return args.length < at
        ? run(`aten.${name}`, args, { ...kwargs, self })
        : run(`aten.${name}`, args.toSpliced(at, 0, self), kwargs);
    });
  }
  for (const [name, operator] of Object.entries(ATTRIBUTES)) {
    defineMember(name, {
      get(this: Tensor) {
        return callOperator(operator, [this]);
      },
    });
  }
  // An operator that is not there is refused when it is called, by its name.
  addResolver((target) => (OPERATOR.test(target) ? overloadOf(target) : undefined));
}
