/** The modules of `tests/oracle/gen_export.py` in TypeScript, by the same names. */
import { cond, Dim, F, float, nn, slice, type Tensor, torch, tuple, whileLoop } from "../../src/index.ts";
import { zeros } from "./case.ts";

export const BATCH = Dim("batch", { min: 2, max: 64 });

export class Containers extends nn.Module {
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

export class ConstantInputs extends nn.Module {
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

export class Rest extends nn.Module {
  override forward(x: Tensor, ...others: Tensor[]): Tensor {
    return x.add((others[0] as Tensor).mul(others[1] as Tensor));
  }
}

export class ClashingNames extends nn.Module {
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

export class ContainersOfModules extends nn.Module {
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

export class Tied extends nn.Module {
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

export class Block extends nn.Module {
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

export class CalledTwice extends nn.Module {
  block = new Block();
  other = new Block();

  override forward(x: Tensor): Tensor {
    return this.other.forward(this.block.forward(this.block.forward(x)));
  }
}

export class AssignedBuffer extends nn.Module {
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

export class Holder extends nn.Module {
  table = torch.ones(2);
}

export class Constants extends nn.Module {
  inner = new Holder();

  override forward(x: Tensor): unknown {
    const one = torch.tensor(1.5);
    return tuple(x.add(this.inner.table).add(one), this.inner.table.mul(torch.tensor([1, 2])));
  }
}

export class UnusedValues extends nn.Module {
  override forward(x: Tensor): Tensor {
    x.sin();
    x.detach();
    const z = x.detach().add(1);
    torch.tensor([float(1)]);
    return z.cos();
  }
}

export class ReturnsInputs extends nn.Module {
  w = new nn.Parameter(torch.ones(2));

  override forward(x: Tensor): unknown {
    return tuple(x, this.w, x);
  }
}

export class Hooked extends nn.Module {
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

export class PatchEmbedding extends nn.Module {
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

export class CausalAttention extends nn.Module {
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

export class Conditional extends nn.Module {
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

export class Loop extends nn.Module {
  lin = new nn.Linear(4, 4);

  override forward(i: Tensor, x: Tensor): unknown {
    return whileLoop(
      (at: Tensor, _it: Tensor) => at.lt(3),
      (at: Tensor, it: Tensor) => [at.add(1), this.lin.forward(it)],
      [i, x],
    );
  }
}

export class Residual extends nn.Module {
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
