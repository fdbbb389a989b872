/**
 * The state of optimizers as data, in the layout of PyTorch.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";

/** What an optimizer remembers of one parameter, by PyTorch's names: `momentum_buffer`, or `step`, `exp_avg` and so on. */
export type ParameterState = Record<string, Tensor | number>;

/** The options of a group by PyTorch's names, such as `weight_decay`, and its parameters as numbers. */
export type SavedGroup = Record<string, unknown> & { readonly params: readonly number[] };

/** What `stateDict()` of an optimizer gives: parameters are numbers, counted through all groups. */
export interface OptimizerStateDict {
  readonly state: Readonly<Record<number, ParameterState>>;
  // biome-ignore lint/style/useNamingConvention: PyTorch's name
  readonly param_groups: readonly SavedGroup[];
}

/**
 * Settings of PyTorch that choose how it computes, and not what: they are read over. What would compute something else is
 * refused by its name.
 */
const IGNORED: readonly string[] = ["foreach", "fused", "capturable", "differentiable", "param_names", "initial_lr"];

/** The name of an option in PyTorch. */
export function pythonName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The items of a dict of PyTorch: of an object, or of a Map as a checkpoint has it. */
function entries(dict: unknown, what: string): [string, unknown][] {
  if (dict instanceof Map) return [...dict].map(([key, value]) => [String(key), value]);
  if (typeof dict === "object" && dict !== null) return Object.entries(dict);
  throw fxError("InvalidArgument", `${what} of an optimizer's state dict is no dict`, {
    help: "pass what stateDict() gave, or what torch.save(optimizer.state_dict(), file) wrote",
  });
}

/** A state dict that was read, and held to the groups of an optimizer. */
export interface ReadState {
  /** The options of each group, by the names of TypeScript. */
  readonly groups: readonly Record<string, unknown>[];
  /** What is remembered of parameters, which are counted through all groups. */
  readonly state: ReadonlyMap<number, ReadonlyMap<string, unknown>>;
}

/** Reads a state dict for groups with so many parameters and these options, some of which may be of one value only. */
export function readState(
  dict: unknown,
  sizes: readonly number[],
  options: readonly string[],
  fixed: Readonly<Record<string, unknown>>,
): ReadState {
  const top = new Map(entries(dict, "the whole"));
  const saved = top.get("param_groups");
  if (!Array.isArray(saved)) throw fxError("InvalidArgument", "the state dict has no list `param_groups`");
  if (saved.length !== sizes.length) {
    throw fxError("InvalidArgument", "loaded state dict has a different number of parameter groups");
  }
  const known = new Map(options.map((it) => [pythonName(it), it]));
  const positions = new Map<string, number>();
  const groups = saved.map((group: unknown, at) => {
    const fields = new Map(entries(group, "a group"));
    const params = fields.get("params");
    if (!Array.isArray(params) || params.length !== sizes[at]) {
      throw fxError(
        "InvalidArgument",
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
      );
    }
    for (const param of params) positions.set(String(param), positions.size);
    const res: Record<string, unknown> = {};
    for (const [name, value] of fields) {
      const option = known.get(name);
      if (option !== undefined) res[option] = value;
      else if (name !== "params" && !IGNORED.includes(name)) checkFixed(name, value, fixed[name]);
    }
    return res;
  });
  const state = new Map<number, ReadonlyMap<string, unknown>>();
  for (const [param, values] of entries(top.get("state"), "the state")) {
    const position = positions.get(param);
    if (position !== undefined) state.set(position, new Map(entries(values, "the state of a parameter")));
  }
  return { groups, state };
}

/** Refuses a setting that this optimizer has otherwise; of one that it does not have, nothing must be asked. */
function checkFixed(name: string, value: unknown, fixed: unknown = false): void {
  if (value === fixed || (value === null && fixed === false)) return;
  throw fxError("InvalidArgument", `the state dict sets \`${name}\` otherwise than this optimizer has it`, {
    help: "load it in the optimizer that it was saved from",
  });
}

/** A tensor of a saved state: a copy of it, in the dtype of its parameter and of its sizes. */
export function savedTensor(state: ReadonlyMap<string, unknown>, name: string, parameter: Tensor): Tensor {
  const value = state.get(name);
  if (!(value instanceof Tensor)) {
    throw fxError("InvalidArgument", `the state dict has no tensor \`${name}\` for a parameter`, {
      help: "load it in the optimizer that it was saved from",
    });
  }
  if (`${value.shape}` !== `${parameter.shape}`) {
    const sizes = `[${value.shape.join(", ")}], and its parameter [${parameter.shape.join(", ")}]`;
    throw fxError("InvalidArgument", `\`${name}\` of the state dict has the sizes ${sizes}`);
  }
  return parameter.clone().copy_(value);
}

/** How many steps a saved state has seen. */
export function savedStep(state: ReadonlyMap<string, unknown>): number {
  const value = state.get("step");
  const step = value instanceof Tensor ? Number(value.item()) : value;
  if (typeof step === "number" && Number.isInteger(step) && step >= 0) return step;
  throw fxError("InvalidArgument", "the state dict has no number `step` for a parameter", {
    help: "load it in the optimizer that it was saved from",
  });
}
