/** Functions, operators and methods of tensors. */
import { Ellipsis, F, float, nn, operator, slice, type Tensor, torch, tuple } from "../../src/index.ts";
import { type Case, zeros, ints, type OfOne, type OfTwo } from "./case.ts";

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

export function ofOne(run: OfOne, x: () => Tensor): Case {
  return { module: () => new Function1(run), args: () => [x()] };
}

export function ofTwo(run: OfTwo, x: () => Tensor, y: () => Tensor): Case {
  return { module: () => new Function2(run), args: () => [x(), y()] };
}

export const FUNCTIONS: Readonly<Record<string, Case>> = {
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
};
