/** What `tests/oracle/gen_export.py` exports, by the same names. */
import { cond, Dim, Ellipsis, map, nn, operator, scan, slice, type Tensor, torch, tuple } from "../../src/index.ts";
import { type Case, ints, layer, zeros } from "./case.ts";
import { FUNCTIONS, ofOne, ofTwo } from "./functionCases.ts";
import { LAYERS } from "./layerCases.ts";
import {
  BATCH,
  Containers,
  ConstantInputs,
  Rest,
  ClashingNames,
  ContainersOfModules,
  Tied,
  CalledTwice,
  AssignedBuffer,
  Constants,
  UnusedValues,
  ReturnsInputs,
  Hooked,
  PatchEmbedding,
  CausalAttention,
  Conditional,
  Loop,
  Residual,
} from "./modules.ts";

export const CASES: Readonly<Record<string, Case>> = {
  containers: {
    module: () => new Containers(),
    args: () => [zeros(2, 3), [zeros(2, 3), zeros(3)], { a: zeros(3), "b-c": tuple(zeros(1)) }],
  },
  constant_inputs: {
    module: () => new ConstantInputs(),
    args: () => [zeros(2), 3, 0.5, true, "mean", null],
    kwargs: () => ({ scale: zeros(2), offset: 2 }),
  },
  rest: { module: () => new Rest(), args: () => [zeros(2), zeros(2), zeros(2)] },
  clashing_names: { module: () => new ClashingNames(), args: () => [zeros(2), zeros(2)] },
  containers_of_modules: { module: () => new ContainersOfModules(), args: () => [zeros(2, 4)] },
  tied: { module: () => new Tied(), args: () => [zeros(2, 4)] },
  called_twice: { module: () => new CalledTwice(), args: () => [zeros(2, 4)] },
  assigned_buffer: { module: () => new AssignedBuffer(), args: () => [zeros(2)] },
  constants: { module: () => new Constants(), args: () => [zeros(2)] },
  unused_values: { module: () => new UnusedValues(), args: () => [zeros(2, 4)] },
  returns_inputs: { module: () => new ReturnsInputs(), args: () => [zeros(2, 4)] },
  ...LAYERS,
  ...FUNCTIONS,
  cond: { module: () => new Conditional(), args: () => [zeros(2, 4), zeros(2, 4)] },
  nested_cond: ofOne(
    (x) =>
      cond(
        x.sum().gt(0),
        (it: Tensor): Tensor =>
          cond(
            torch.max(it).gt(1),
            (a: Tensor) => a.sin(),
            (a: Tensor) => a.tan(),
            [it],
          ),
        (it: Tensor) => it.cos(),
        [x],
      ),
    () => zeros(2, 4),
  ),
  mapped: ofTwo(
    (x, y) => map((row: Tensor, other: Tensor) => row.add(other), x, y),
    () => zeros(3, 4),
    () => zeros(4),
  ),
  scanned: ofTwo(
    (x, y) =>
      scan(
        (carried: Tensor, row: Tensor) => {
          const following = carried.add(row);
          return [following, following.mul(2)];
        },
        x,
        y,
      ),
    () => zeros(4),
    () => zeros(3, 4),
  ),
  while_loop: { module: () => new Loop(), args: () => [ints(), zeros(4)] },
  dynamic_size: {
    ...ofOne(
      (x) => tuple(operator.add(x.sum(), x.shape[0]), operator.mul(x, x.size(0))),
      () => zeros(4, 4),
    ),
    dynamicShapes: [{ 0: BATCH }],
  },
  dynamic_views: {
    ...ofOne(
      (x) => {
        const n = x.shape[0] as number;
        return tuple(
          x.view(n, 2, 2).reshape(operator.mul(n, 2) as number, 2),
          torch.zeros(n, 3),
          n,
          torch.arange(n),
          x.expand(3, n, 4),
          x.flatten(),
        );
      },
      () => zeros(4, 4),
    ),
    dynamicShapes: [{ 0: BATCH }],
  },
  dynamic_pair: {
    ...ofTwo(
      (x, y) => torch.cat([x, y]).sum(0).add(torch.matmul(x, y.t()).sum()),
      () => zeros(4, 4),
      () => zeros(4, 4),
    ),
    dynamicShapes: [{ 0: BATCH }, { 0: BATCH }],
  },
  dynamic_tokens: {
    ...ofOne(
      (x) => {
        const [n, t] = x.shape as [number, number];
        return tuple(
          torch.arange(t),
          x.get(slice(null), slice(-1, null)),
          x.view(operator.mul(n, t) as number),
          x.softmax(-1).mean(1),
        );
      },
      () => zeros(4, 5),
    ),
    dynamicShapes: [{ 0: BATCH, 1: Dim("length", { min: 2, max: 8 }) }],
  },
  dynamic_indices: {
    ...ofOne(
      (x) => {
        const [n, t] = x.shape as [number, number];
        return tuple(
          x.get(slice(operator.sub(n, 1) as number), null, Ellipsis, slice(1, null)),
          x.get(Ellipsis, operator.sub(t, 1) as number),
          x.get(operator.sub(n, 1) as number, slice(operator.sub(t, 1) as number)),
          torch.arange(80).get(slice(n, null)),
        );
      },
      () => zeros(4, 5),
    ),
    dynamicShapes: [{ 0: Dim("batch", { min: 3, max: 64 }), 1: Dim("length", { min: 3, max: 8 }) }],
  },
  item: ofOne(
    (x) => {
      const n = x.sum().int().item() as number;
      torch._check(operator.ge(n, 2));
      torch._check(operator.le(n, 9));
      return operator.add(torch.zeros(n), n);
    },
    () => zeros(4),
  ),
  picked: ofOne(
    (x) => [x.nonzero().mul(2), x.get(x.gt(0)), torch.maskedSelect(x, x.lt(0))],
    () => zeros(4, 3),
  ),
  picked_and_checked: ofOne(
    (x) => {
      const y = x.nonzero();
      const n = y.shape[0] as number;
      torch._check(operator.ge(n, 2));
      torch._check(operator.le(n, 3));
      return [y.sum(0), n];
    },
    () => zeros(4),
  ),
  picked_dynamic: {
    ...ofOne(
      (x) => [x.nonzero(), torch.maskedSelect(x, x.gt(0))],
      () => zeros(4, 3),
    ),
    dynamicShapes: [{ 0: Dim("a", { min: 2, max: 7 }), 1: Dim("b", { max: 5 }) }],
  },
  vit_dynamic: {
    module: () => new PatchEmbedding(),
    args: () => [zeros(2, 3, 8, 8)],
    train: false,
    dynamicShapes: [{ 0: BATCH }],
  },
  gpt_dynamic: {
    module: () => new CausalAttention(),
    args: () => [ints(2, 5)],
    train: false,
    dynamicShapes: [{ 0: BATCH, 1: Dim("length", { min: 2, max: 7 }) }],
  },
  lstm_dynamic: {
    ...layer(
      () => new nn.LSTM(4, 3),
      () => zeros(5, 3, 4),
    ),
    dynamicShapes: [{ 1: BATCH }],
  },
  resnet_dynamic: {
    module: () => new Residual(),
    args: () => [zeros(2, 3, 16, 16)],
    train: false,
    dynamicShapes: [{ 0: BATCH }],
  },
  hooks: { module: () => new Hooked(), args: () => [zeros(2, 4)] },
  vit: { module: () => new PatchEmbedding(), args: () => [zeros(2, 3, 8, 8)], train: false },
  gpt: { module: () => new CausalAttention(), args: () => [ints(2, 5)], train: false },
};
