/** The modules of `tests/oracle/gen_export.py` in TypeScript, by the same names. */
import {
  cond,
  Dim,
  type DynamicShapes,
  Ellipsis,
  F,
  float,
  map,
  nn,
  operator,
  scan,
  slice,
  type Tensor,
  torch,
  tuple,
  whileLoop,
} from "../../src/index.ts";

/** A module with the inputs that it was exported with. */
export interface Case {
  readonly module: () => nn.Module;
  readonly args: () => unknown[];
  readonly kwargs?: () => Record<string, unknown>;
  readonly train?: boolean;
  readonly dynamicShapes?: DynamicShapes;
}

const zeros = (...sizes: number[]): Tensor => torch.zeros(sizes);
const ints = (...sizes: number[]): Tensor => torch.zeros(sizes, { dtype: "int64" });

type OfOne = (x: Tensor) => unknown;
type OfTwo = (x: Tensor, y: Tensor) => unknown;

/** A module of a function. */
class Function1 extends nn.Module {
  readonly run: OfOne;

  constructor(run: OfOne) {
    super();
    this.run = run;
  }

  override forward(x: Tensor): unknown {
    return this.run(x);
  }
}

class Function2 extends nn.Module {
  readonly run: OfTwo;

  constructor(run: OfTwo) {
    super();
    this.run = run;
  }

  override forward(x: Tensor, y: Tensor): unknown {
    return this.run(x, y);
  }
}

function ofOne(run: OfOne, x: () => Tensor): Case {
  return { module: () => new Function1(run), args: () => [x()] };
}

function ofTwo(run: OfTwo, x: () => Tensor, y: () => Tensor): Case {
  return { module: () => new Function2(run), args: () => [x(), y()] };
}

class Containers extends nn.Module {
  override forward(
    x: Tensor,
    ys: readonly [Tensor, Tensor],
    options: { a: Tensor; "b-c": readonly Tensor[] },
  ): unknown {
    return {
      sum: x.add(ys[0]),
      list: [ys[1].mul(2), tuple(options.a, options["b-c"][0])],
      none: null,
    };
  }
}

class ConstantInputs extends nn.Module {
  override forward(
    x: Tensor,
    n: number,
    ratio: number,
    flag: boolean,
    mode: string,
    nothing: null,
    { scale, offset }: { scale: Tensor; offset: number },
  ): unknown {
    let y = flag ? x.mul(n).add(ratio) : x;
    y = mode === "mean" ? y.mean() : y;
    return tuple(y.mul(scale).add(offset), nothing ?? n, mode);
  }
}

class Rest extends nn.Module {
  override forward(x: Tensor, ...others: Tensor[]): Tensor {
    return x.add((others[0] as Tensor).mul(others[1] as Tensor));
  }
}

class ClashingNames extends nn.Module {
  mul = new nn.Parameter(torch.ones(2));
  declare x: Tensor;

  constructor() {
    super();
    this.registerBuffer("x", torch.ones(2));
  }

  // oxlint-disable-next-line typescript/naming-convention -- the name is what is tested
  override forward(mul: Tensor, p_mul: Tensor): Tensor {
    return mul.mul(this.mul).add(p_mul.mul(this.x));
  }
}

class ContainersOfModules extends nn.Module {
  layers = new nn.ModuleList([new nn.Linear(4, 4), new nn.Linear(4, 4, { bias: false })]);
  heads = new nn.ModuleDict({ a: new nn.Linear(4, 2), b: new nn.Sequential(new nn.Linear(4, 2), new nn.Tanh()) });
  scales = new nn.ParameterList([torch.ones(4), torch.ones(4)]);
  unused = new nn.Linear(2, 2);

  override forward(x: Tensor): unknown {
    let y = x;
    [...this.layers].forEach((inner, at) => {
      y = (inner.call(y) as Tensor).relu().mul([...this.scales][at] as Tensor);
    });
    return tuple(this.heads.get("a").call(y), this.heads.get("b").call(y));
  }
}

class Tied extends nn.Module {
  a = new nn.Linear(4, 4);
  b = new nn.Linear(4, 4);

  constructor() {
    super();
    this.b.weight = this.a.weight;
  }

  override forward(x: Tensor): Tensor {
    return this.b.forward(this.a.forward(x));
  }
}

class Block extends nn.Module {
  lin = new nn.Linear(4, 4);
  declare seen: Tensor;

  constructor() {
    super();
    this.registerBuffer("seen", torch.zeros(1));
  }

  override forward(x: Tensor): Tensor {
    this.seen.add_(1);
    return this.lin.forward(x).add(this.seen);
  }
}

class CalledTwice extends nn.Module {
  block = new Block();
  other = new Block();

  override forward(x: Tensor): Tensor {
    return this.other.forward(this.block.forward(this.block.forward(x)));
  }
}

class AssignedBuffer extends nn.Module {
  declare state: Tensor;

  constructor() {
    super();
    this.registerBuffer("state", torch.zeros(2));
  }

  override forward(x: Tensor): Tensor {
    this.state = this.state.add(x);
    return this.state.mul(2);
  }
}

class Holder extends nn.Module {
  table = torch.ones(2);
}

class Constants extends nn.Module {
  inner = new Holder();

  override forward(x: Tensor): unknown {
    const one = torch.tensor(1.5);
    return tuple(x.add(this.inner.table).add(one), this.inner.table.mul(torch.tensor([1, 2])));
  }
}

class UnusedValues extends nn.Module {
  override forward(x: Tensor): Tensor {
    x.sin();
    x.detach();
    const z = x.detach().add(1);
    torch.tensor([float(1)]);
    return z.cos();
  }
}

class ReturnsInputs extends nn.Module {
  w = new nn.Parameter(torch.ones(2));

  override forward(x: Tensor): unknown {
    return tuple(x, this.w, x);
  }
}

class Hooked extends nn.Module {
  lin = new nn.Linear(4, 4);

  constructor() {
    super();
    this.lin.registerForwardPreHook((_module, [x]) => [(x as Tensor).mul(2)]);
    this.lin.registerForwardHook((_module, _args, output) => (output as Tensor).add(1));
    this.registerForwardHook((_module, _args, output) => (output as Tensor).relu());
  }

  override forward(x: Tensor): Tensor {
    return this.lin.forward(x);
  }
}

class PatchEmbedding extends nn.Module {
  proj = new nn.Conv2d(3, 8, 4, { stride: 4 });
  cls = new nn.Parameter(zeros(1, 1, 8));
  pos = new nn.Parameter(zeros(1, 5, 8));
  blocks = new nn.Sequential(
    new nn.TransformerEncoderLayer(8, 2, 16, {
      dropout: 0,
      activation: "gelu",
      batchFirst: true,
      normFirst: true,
    }),
    new nn.LayerNorm(8),
  );

  override forward(x: Tensor): Tensor {
    let y = this.proj.forward(x).flatten(2).transpose(1, 2);
    y = torch.cat([this.cls.expand(y.shape[0] as number, -1, -1), y], 1).add(this.pos);
    return (this.blocks.call(y) as Tensor).get(slice(null), 0);
  }
}

class CausalAttention extends nn.Module {
  wte = new nn.Embedding(16, 8);
  wpe = new nn.Embedding(8, 8);
  attn = new nn.Linear(8, 24);
  out = new nn.Linear(8, 8);
  declare mask: Tensor;

  constructor() {
    super();
    this.registerBuffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8), { persistent: false });
  }

  override forward(ids: Tensor): Tensor {
    const [b, t] = ids.shape as [number, number];
    const x = this.wte.forward(ids).add(this.wpe.forward(torch.arange(0, t, { dtype: torch.long })));
    const parts = this.attn.forward(x).split(8, { dim: 2 });
    const [q, k, v] = parts.map((it) => it.view(b, t, 2, 4).transpose(1, 2)) as [Tensor, Tensor, Tensor];
    const scores = torch.matmul(q, k.transpose(-2, -1)).mul(0.5);
    const hidden = this.mask.get(slice(null), slice(null), slice(t), slice(t)).eq(0);
    const att = scores.maskedFill(hidden, -Infinity).softmax(-1);
    const y = torch.matmul(att, v).transpose(1, 2).contiguous().view(b, t, 8);
    return torch.matmul(this.out.forward(y), this.wte.weight.t());
  }
}

class Conditional extends nn.Module {
  lin = new nn.Linear(4, 4);
  declare b: Tensor;

  constructor() {
    super();
    this.registerBuffer("b", torch.ones(4));
  }

  override forward(x: Tensor, y: Tensor): Tensor {
    const [a, b] = cond<[Tensor], readonly [Tensor, Tensor]>(
      x.sum().gt(0),
      (it) => [this.lin.forward(it).add(y), it.sin()],
      (it) => [it.add(this.b), it.cos()],
      [x],
    );
    return a.mul(b);
  }
}

class Loop extends nn.Module {
  lin = new nn.Linear(4, 4);

  override forward(i: Tensor, x: Tensor): unknown {
    return whileLoop(
      (at: Tensor, _it: Tensor) => at.lt(3),
      (at: Tensor, it: Tensor) => [at.add(1), this.lin.forward(it)],
      [i, x],
    );
  }
}

class Residual extends nn.Module {
  conv = new nn.Conv2d(3, 4, 3, 2, 1, { bias: false });
  bn = new nn.BatchNorm2d(4);
  inner = new nn.Conv2d(4, 4, 3, 1, 1);
  fc = new nn.Linear(4, 2);

  override forward(x: Tensor): Tensor {
    let y = F.maxPool2d(this.bn.forward(this.conv.forward(x)).relu(), 3, 2, 1);
    y = torch.relu_(this.inner.forward(y).add(y));
    return this.fc.forward(torch.flatten(F.adaptiveAvgPool2d(y, 1), 1));
  }
}

const BATCH = Dim("batch", { min: 2, max: 64 });

const { Sequential } = nn;

/** A module of layers of `nn`, given tensors. */
function layer(module: () => nn.Module, ...args: (() => unknown)[]): Case {
  return { module, args: () => args.map((it) => it()) };
}

function modes(name: string, module: () => nn.Module, x: () => Tensor): Record<string, Case> {
  const one = { module, args: () => [x()] };
  return { [`${name}_train`]: { ...one, train: true }, [`${name}_eval`]: { ...one, train: false } };
}

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
  ...modes(
    "dropout",
    () => new Sequential(new nn.Dropout(0.3), new nn.Linear(4, 4)),
    () => zeros(2, 4),
  ),
  ...modes(
    "norms",
    () =>
      new Sequential(
        new nn.BatchNorm2d(3),
        new nn.GroupNorm(3, 3),
        new nn.InstanceNorm2d(3, { affine: true, trackRunningStats: true }),
      ),
    () => zeros(2, 3, 5, 5),
  ),
  ...modes(
    "encoder_layer",
    () => new nn.TransformerEncoderLayer(8, 2, 16, { dropout: 0.1, batchFirst: true }),
    () => zeros(2, 5, 8),
  ),
  lstm: layer(
    () => new nn.LSTM(4, 3, 2),
    () => zeros(5, 2, 4),
  ),
  lstm_with_state: layer(
    () => new nn.LSTM(4, 3, { bidirectional: true, batchFirst: true }),
    () => zeros(2, 5, 4),
    () => tuple(zeros(2, 2, 3), zeros(2, 2, 3)),
  ),
  gru: layer(
    () => new nn.GRU(4, 3),
    () => zeros(5, 2, 4),
  ),
  rnn: layer(
    () => new nn.RNN(4, 3, { nonlinearity: "relu" }),
    () => zeros(5, 2, 4),
  ),
  lstm_cell: layer(
    () => new nn.LSTMCell(4, 3),
    () => zeros(2, 4),
  ),
  gru_cell: layer(
    () => new nn.GRUCell(4, 3),
    () => zeros(2, 4),
    () => zeros(2, 3),
  ),
  attention: layer(
    () => new nn.MultiheadAttention(8, 2),
    () => zeros(5, 2, 8),
    () => zeros(5, 2, 8),
    () => zeros(5, 2, 8),
  ),
  attention_without_weights: {
    module: () => new nn.MultiheadAttention(8, 2, { batchFirst: true }),
    args: () => [zeros(2, 5, 8), zeros(2, 5, 8), zeros(2, 5, 8)],
    kwargs: () => ({ need_weights: false }),
  },
  embedding: layer(
    () => new nn.Embedding(10, 4, { paddingIdx: 0 }),
    () => ints(2, 3),
  ),
  embedding_bag: layer(
    () => new nn.EmbeddingBag(10, 4, { mode: "sum" }),
    () => ints(2, 3),
  ),
  conv1d: layer(
    () => new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1, dilation: 2, groups: 2, bias: false }),
    () => zeros(2, 4, 9),
  ),
  conv_same: layer(
    () => new nn.Conv2d(2, 2, 3, { padding: "same" }),
    () => zeros(1, 2, 4, 4),
  ),
  conv_circular: layer(
    () => new nn.Conv2d(2, 2, 3, { padding: 1, paddingMode: "circular" }),
    () => zeros(1, 2, 4, 4),
  ),
  conv_transposed: layer(
    () => new nn.ConvTranspose2d(2, 3, 3, { stride: 2, outputPadding: 1 }),
    () => zeros(1, 2, 4, 4),
  ),
  pools: layer(
    () =>
      new Sequential(new nn.MaxPool2d(3, 2, 1), new nn.AvgPool2d(2, 1), new nn.AdaptiveMaxPool2d(1), new nn.Flatten()),
    () => zeros(1, 2, 8, 8),
  ),
  activations: layer(
    () =>
      new Sequential(
        new nn.SiLU(),
        new nn.GELU({ approximate: "tanh" }),
        new nn.ELU(),
        new nn.LeakyReLU(0.1),
        new nn.Hardtanh(),
        new nn.PReLU(),
        new nn.Softplus(),
        new nn.Mish(),
        new nn.Hardswish(),
        new nn.LogSigmoid(),
        new nn.Softmax(-1),
        new nn.ReLU6(),
        new nn.SELU(),
        new nn.Sigmoid(),
        new nn.GLU(),
        new nn.ReLU({ inplace: true }),
      ),
    () => zeros(2, 4),
  ),
  cross_entropy: layer(
    () => new nn.CrossEntropyLoss({ labelSmoothing: 0.1 }),
    () => zeros(3, 5),
    () => ints(3),
  ),
  mse: layer(
    () => new nn.MSELoss(),
    () => zeros(3, 5),
    () => zeros(3, 5),
  ),
  bce: layer(
    () => new nn.BCEWithLogitsLoss(),
    () => zeros(3),
    () => zeros(3),
  ),
  huber: layer(
    () => new nn.SmoothL1Loss({ reduction: "sum" }),
    () => zeros(3),
    () => zeros(3),
  ),
  kl: layer(
    () => new nn.KLDivLoss({ reduction: "batchmean" }),
    () => zeros(3, 5),
    () => zeros(3, 5),
  ),
  scalars: ofOne(
    (x) =>
      tuple(
        x.sub(1),
        operator.sub(1, x),
        operator.truediv(2, x),
        operator.truediv(x, 2),
        operator.pow(x, 2),
        operator.pow(2, x),
        operator.floordiv(x, 2),
        operator.mod(x, 3),
        operator.neg(x),
        operator.abs(x),
        x.mul(0.5),
        operator.add(x, true),
      ),
    () => zeros(2, 4),
  ),
  comparisons: ofTwo(
    (x, y) =>
      tuple(
        operator.lt(x, y),
        operator.ge(x, 1),
        operator.eq(x, y),
        operator.ne(x, 0.5),
        operator.and_(x.gt(0), y.gt(0)),
        operator.or_(x.gt(0), y.gt(0)),
        operator.invert(x.gt(0)),
        torch.logicalXor(x, y),
        torch.isnan(x),
      ),
    () => zeros(2, 4),
    () => zeros(2, 4),
  ),
  views: ofOne(
    (x) => {
      const parts = torch.stack([x[0] as Tensor, x[1] as Tensor], { dim: 1 });
      return tuple(
        x.permute(2, 0, 1),
        x.transpose(0, -1),
        x.mT,
        parts,
        x.unsqueeze(1).expand(2, 5, 3, 4),
        x.squeeze(),
        x.narrow(1, 0, 2),
        x.unflatten(2, [2, 2]),
        x.flatten(1),
        x.reshape(6, -1),
        x.view(2, -1),
        x.unfold(2, 2, 1),
        x.movedim(0, 2),
        torch.cat([x, x], 1),
        x.contiguous(),
        x.transpose(0, 1).contiguous(),
        x.repeat(1, 2, 1),
        torch.flip(x, [0, 1]),
        x.roll(1, 0),
        x.diagonal(0, 1, 2),
        torch.atleast_1d(x),
        x.viewAs(x),
        x.expandAs(x),
        x.swapaxes(0, 1),
        x.tile([2, 1]),
      );
    },
    () => zeros(2, 3, 4),
  ),
  parts: ofOne(
    (x) => {
      const [a, b] = x.split([2, 4], 1);
      const [c, d, e] = x.chunk(3, { dim: 1 }) as unknown as [Tensor, Tensor, Tensor];
      const rows = x.unbind();
      return tuple(a, b, c.mul(d), e, rows[1], torch.tensorSplit(x, 2)[0]);
    },
    () => zeros(4, 6),
  ),
  indexing: ofTwo(
    (x, i) =>
      tuple(
        x[0],
        x[-1],
        x.get(slice(1, 3)),
        x.get(slice(null, null, 2), slice(1, null)),
        x.get(Ellipsis, 0),
        x.get(null),
        x.get(slice(null), null, 2),
        x.get(i),
        x.get(slice(null), i),
        x.get([0, 1]),
        x.get(i, i),
        x.get(slice(1, null), i),
        x.indexSelect(1, i),
        x.gather(0, i.unsqueeze(0)),
      ),
    () => zeros(4, 5),
    () => ints(3),
  ),
  assignments: ofTwo(
    (x, i) => {
      const y = x.clone();
      y.set(0, float(1));
      y.set(tuple(slice(null), 1), x.get(slice(null), 0));
      y.set(i, 0.5);
      const part = tuple(slice(1, 3), slice(2, null));
      y.set(part, operator.iadd(y.get(slice(1, 3), slice(2, null)), 1));
      y.maskedFill_(y.gt(2), float(0));
      y.indexAdd_(0, i, x.get(slice(3)));
      y.zero_();
      y.copy_(x);
      const z = torch.zerosLike(x);
      z.fill_(3).relu_();
      z.unsqueeze_(0);
      return tuple(y, z, z);
    },
    () => zeros(4, 5),
    () => ints(3),
  ),
  reductions: ofOne(
    (x) => {
      const [values, indices] = x.max(1) as unknown as [Tensor, Tensor];
      return tuple(
        x.sum(),
        x.sum(1),
        x.sum([0, 2], { keepdim: true }),
        x.mean(-1),
        x.var(1),
        x.std(),
        x.amax(1),
        values,
        indices,
        x.argmax(-1),
        x.prod(0),
        x.any(),
        x.all(2),
        x.norm(),
        x.logsumexp(1),
        x.cumsum(0),
        torch.topk(x, 2).indices,
        x.sort({ descending: true })[0],
        x.median(),
        x.softmax(0),
        x.logSoftmax(-1),
        torch.varMean(x, 0)[1],
        x.sum({ dtype: torch.float64 }),
        x.nansum(0),
        x.countNonzero(),
      );
    },
    () => zeros(2, 3, 4),
  ),
  products: ofTwo(
    (x, y) => {
      return tuple(
        torch.matmul(x, y),
        torch.bmm(x, y),
        torch.einsum("bij,bjk->bik", x, y),
        torch.baddbmm(torch.zeros(3), x, y),
        (x[0] as Tensor).mm(y[0] as Tensor),
        torch.addmm((x[0] as Tensor).get(slice(null), slice(3)), x[0] as Tensor, y[0] as Tensor, { beta: 0.5 }),
        torch.outer(x.get(0, 0), y.get(0, 0)),
        x.get(0, 0).dot(x.get(0, 1)),
        torch.tensordot(x[0] as Tensor, y[0] as Tensor, 1),
        F.linear(x, (y[0] as Tensor).t()),
        F.bilinear(x[0] as Tensor, x[0] as Tensor, y.get(slice(null), slice(null), slice(1)).expand(2, 4, 4)),
        torch.cdist(x, x),
        torch.matmul(x, y[0] as Tensor),
      );
    },
    () => zeros(2, 3, 4),
    () => zeros(2, 4, 3),
  ),
  dtypes: ofOne(
    (x) =>
      tuple(
        x.to(torch.float64),
        x.float(),
        x.half(),
        x.long(),
        x.bool(),
        x.to(torch.float32),
        x.to("cpu"),
        x.typeAs(x.double()),
        x.to({ dtype: torch.int32, copy: true }),
        x.int().float(),
        x.gt(0).to(x.dtype),
      ),
    () => zeros(2, 4),
  ),
  factories: ofOne(
    (x) =>
      tuple(
        torch.zeros(2, 3),
        torch.ones(3, { dtype: torch.int64 }),
        torch.full([2], 1.5),
        torch.arange(4),
        torch.arange(0, 1, 0.25),
        torch.eye(3),
        torch.linspace(0, 1, 5),
        torch.empty(2).fill_(1),
        torch.zerosLike(x),
        torch.fullLike(x, 2),
        x.newZeros(3),
        x.newOnes([2, 2]),
        torch.tril(torch.ones(3, 3)),
        torch.triu(torch.ones(3, 3), { diagonal: 1 }),
        x.newFull([2], float(3)),
        torch.ones(x.shape[0] as number, operator.mul(x.shape[1], 2) as number),
        torch.scalarTensor(float(2)),
        torch.meshgrid(torch.arange(2), torch.arange(3), { indexing: "ij" })[0],
      ),
    () => zeros(2, 4),
  ),
  randoms: ofOne(
    (x) =>
      tuple(
        torch.rand(2),
        torch.randn(2, 3),
        torch.randLike(x),
        torch.randint(0, 5, [2]),
        torch.bernoulli(x),
        F.dropout(x, 0.5),
        torch.randperm(4),
        x.normal_(),
      ),
    () => zeros(2, 4),
  ),
  pads: ofOne(
    (x) =>
      tuple(
        F.pad(x, [1, 2]),
        F.pad(x, [1, 1, 1, 1], "reflect"),
        F.pad(x, [1, 1, 2, 2], { mode: "replicate" }),
        F.pad(x, [1, 1, 1, 1], { mode: "circular" }),
        F.pad(x, [0, 1], { value: float(2) }),
        F.pad(x, [-1, 0]),
      ),
    () => zeros(1, 2, 4, 4),
  ),
  interpolations: ofOne(
    (x) =>
      tuple(
        F.interpolate(x, { scaleFactor: 2 }),
        F.interpolate(x, { size: [8, 6], mode: "bilinear" }),
        F.interpolate(x, { size: 8, mode: "bicubic", alignCorners: true }),
        F.interpolate(x, { scaleFactor: 0.5, mode: "area" }),
        F.pixelShuffle(x.repeat(1, 2, 1, 1), 2),
        F.interpolate(x, { size: 3, mode: "nearest-exact" }),
      ),
    () => zeros(1, 2, 4, 4),
  ),
  functions: ofTwo(
    (x, y) =>
      tuple(
        torch.where(x.gt(0), x, y),
        torch.where(x.gt(0), float(1), y),
        torch.clamp(x, 0, 1),
        x.clamp({ min: 0.5 }),
        torch.maximum(x, y),
        torch.lerp(x, y, 0.3),
        torch.addcmul(x, x, y, { value: 2 }),
        F.cosineSimilarity(x, y),
        F.normalize(x),
        torch.atan2(x, y),
        x.sign(),
        torch.rsqrt(x),
        x.pow(y),
        F.oneHot(torch.zeros(3, { dtype: torch.int64 }), 4),
        torch.cumprod(x, 1),
        F.layerNorm(x, [4]),
        F.rmsNorm(x, [4]),
        x.exp().log1p(),
        torch.nanToNum(x),
        torch.sigmoid(x),
        F.scaledDotProductAttention(x.get(null), y.get(null), y.get(null), { isCausal: true }),
        torch.add(x, y, { alpha: 2 }),
      ),
    () => zeros(2, 4),
    () => zeros(2, 4),
  ),
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
