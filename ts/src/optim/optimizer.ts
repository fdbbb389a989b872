/**
 * What all optimizers have in common. The others of this folder decide how a step changes parameters; gradients are given.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { pythonFloat } from "../graph/python.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { type OptimizerStateDict, type ParameterState, pythonName, readState } from "./stateDict.ts";
import { checkFunction, checkGiven, checkNames } from "../base/given.ts";

/** Parameters with the options that hold for them. */
export type ParameterGroup<Options> = Options & { readonly params: readonly Tensor[] };

/** What an optimizer is made for: parameters, pairs of name and parameter, or groups with options of their own. */
export type OptimizerParameters<Options> =
  | Iterable<Tensor>
  | Iterable<readonly [string, Tensor]>
  | readonly (Partial<Options> & { readonly params: Iterable<Tensor> })[];

/**
 * The base of all optimizers: `torch.optim.Optimizer`. Options of a group may be changed between steps: a schedule sets
 * `optimizer.paramGroups[0].lr`.
 */
export abstract class Optimizer<Options extends object, State> {
  /** The parameters, by groups. */
  readonly paramGroups: (Options & { params: Tensor[] })[] = [];
  /** What is remembered of parameters from step to step. */
  readonly state = new Map<Tensor, State>();
  readonly #optionNames: readonly string[];

  constructor(params: OptimizerParameters<Options>, defaults: Options, given: Partial<Options> = {}) {
    checkGiven("an optimizer", typeof defaults === "object" && defaults !== null, "its defaults as an object");
    const areMany = typeof (params as Partial<Iterable<unknown>> | null)?.[Symbol.iterator] === "function";
    checkGiven("an optimizer", areMany, "a list of parameters", "model.parameters()");
    checkFunction("an optimizer", "its method check", this.check);
    this.#optionNames = Object.keys(defaults);
    checkNames(new.target.name, given, this.#optionNames);
    const items = [...(params as Iterable<unknown>)];
    if (items.length === 0) throw fxError("InvalidArgument", "optimizer got an empty parameter list");
    const groups = items.filter((it): it is Partial<Options> & { params: Iterable<Tensor> } => isGroup(it));
    const alone = items.filter((it) => !isGroup(it)).map((it) => (Array.isArray(it) ? it[1] : it) as unknown);
    if (alone.length > 0) groups.unshift({ params: alone as Tensor[] } as Partial<Options> & { params: Tensor[] });
    const seen = new Set<Tensor>();
    for (const group of groups) {
      const tensors = [...group.params];
      for (const tensor of tensors) {
        if (!(tensor instanceof Tensor)) {
          throw fxError("InputType", `optimizer can only optimize Tensors, but one of the params is ${typeof tensor}`);
        }
        if (seen.has(tensor)) {
          throw fxError("InvalidArgument", "some parameters appear in more than one parameter group");
        }
        seen.add(tensor);
      }
      checkNames(new.target.name, group, ["params", ...this.#optionNames]);
      const options = { ...defaults, ...given, ...group, params: tensors };
      this.check(options);
      this.paramGroups.push(options);
    }
  }

  /** Refuses options that PyTorch refuses. */
  protected abstract check(options: Options): void;

  /** Changes one parameter by its gradient. */
  protected abstract update(parameter: Tensor, gradient: Tensor, options: Options): void;

  /** Options of PyTorch that are what this optimizer is, by PyTorch's names. */
  protected fixedOptions(): Readonly<Record<string, unknown>> {
    return {};
  }

  /** What is remembered of a parameter, by PyTorch's names. */
  protected abstract saveState(state: State): ParameterState;

  /** What was remembered of a parameter; it is kept, so that nothing of it may be shared. */
  protected abstract loadState(
    saved: ReadonlyMap<string, unknown>,
    parameter: Tensor,
    options: Options,
  ): State | undefined;

  /** By which tensors what is remembered holds memory. */
  protected abstract tensorsOf(state: State): readonly (Tensor | undefined)[];

  /**
   * What is remembered and the options, as PyTorch's `state_dict()` lays them out. Tensors are those of the optimizer, which
   * the next step changes: save them, or clone them.
   *
   * @example
   * ```ts
   * const checkpoint = { model: model.stateDict(), optimizer: optimizer.stateDict() };
   * ```
   */
  stateDict(): OptimizerStateDict {
    const state: Record<number, ParameterState> = {};
    let position = 0;
    const groups = this.paramGroups.map((group) => {
      const saved: Record<string, unknown> = {};
      for (const [name, value] of Object.entries(group)) if (name !== "params") saved[pythonName(name)] = value;
      const params = group.params.map((parameter) => {
        const known = this.state.get(parameter);
        if (known !== undefined) state[position] = this.saveState(known);
        return position++;
      });
      return { ...saved, ...this.fixedOptions(), params };
    });
    return { state, param_groups: groups };
  }

  /**
   * Takes over what `stateDict` gave, or what `torch.save(optimizer.state_dict(), file)` wrote and `loadCheckpoint` read:
   * training goes on as if it had not been interrupted. Tensors are copied. The groups must be those of the saved optimizer;
   * nothing is changed where they are not.
   *
   * @example
   * ```ts
   * optimizer.loadStateDict(await loadCheckpoint("optimizer.pt"));
   * ```
   */
  loadStateDict(stateDict: OptimizerStateDict | ReadonlyMap<unknown, unknown>): void {
    const sizes = this.paramGroups.map((group) => group.params.length);
    const { groups, state } = readState(stateDict, sizes, this.#optionNames, this.fixedOptions());
    const options = this.paramGroups.map((group, at) => ({ ...group, ...groups[at] }));
    for (const it of options) this.check(it);
    const states = new Map<Tensor, State>();
    for (const [parameter, saved, group] of this.#saved(state, options)) {
      const loaded = tidy(() => {
        const it = this.loadState(saved, parameter, group);
        for (const tensor of it === undefined ? [] : this.tensorsOf(it)) if (tensor !== undefined) keep(tensor);
        return it;
      });
      if (loaded !== undefined) states.set(parameter, loaded);
    }
    for (const it of this.state.values()) for (const tensor of this.tensorsOf(it)) tensor?.dispose();
    this.state.clear();
    for (const [parameter, it] of states) this.state.set(parameter, it);
    for (const [at, group] of this.paramGroups.entries()) Object.assign(group, groups[at]);
  }

  *#saved(
    state: ReadonlyMap<number, ReadonlyMap<string, unknown>>,
    options: readonly (Options & { params: Tensor[] })[],
  ): Iterable<[Tensor, ReadonlyMap<string, unknown>, Options]> {
    let position = 0;
    for (const group of options) {
      for (const parameter of group.params) {
        const saved = state.get(position++);
        if (saved !== undefined) yield [parameter, saved, group];
      }
    }
  }

  /** Changes each parameter that has a gradient by it. */
  step(): void {
    for (const group of this.paramGroups) {
      for (const parameter of group.params) {
        const gradient = parameter.grad;
        if (gradient !== null) tidy(() => this.update(parameter, gradient, group));
      }
    }
  }

  /** Forgets the gradients. */
  zeroGrad(): void {
    for (const group of this.paramGroups) {
      for (const parameter of group.params) {
        parameter.grad?.dispose();
        parameter.grad = null;
      }
    }
  }
}

/** Refuses a number by PyTorch's text where it is out of its range. */
export function checkOption(isValid: boolean, what: string, value: number): void {
  if (!isValid) throw fxError("InvalidArgument", `Invalid ${what}: ${pythonFloat(value)}`);
}

function isGroup(it: unknown): boolean {
  return typeof it === "object" && it !== null && !(it instanceof Tensor) && "params" in it;
}
