/**
 * The modules of PyTorch's recorded traces, as one writes them in TypeScript.
 *
 * @module
 */
import { F, float, nn, operator, type Tensor, torch, tuple } from "../../../src/index.ts";

const { add, sub, mul, matmul } = operator;

class Linear extends nn.Module {
  lin = new nn.Linear(4, 3);
  override forward(x: Tensor): Tensor {
    return this.lin.forward(x).relu();
  }
}

export class Parameters extends nn.Module {
  w = new nn.Parameter(torch.ones(3));
  declare b: Tensor;
  c = torch.ones(3);
  constructor() {
    super();
    this.registerBuffer("b", torch.zeros(3));
  }
  override forward(x: Tensor): Tensor {
    return add(add(add(mul(x, this.w), this.b), this.w), this.c);
  }
}

class Sub extends nn.Module {
  conv = new nn.Conv2d(1, 1, 1);
  p = new nn.Parameter(torch.ones(1));
  override forward(x: Tensor): Tensor {
    return add(this.conv.forward(x), this.p);
  }
}

export class Nested extends nn.Module {
  blk = new Sub();
  Blk2 = new Sub();
  override forward(x: Tensor): Tensor {
    return add(add(this.blk.forward(x), this.Blk2.forward(x)), this.blk.forward(x));
  }
}

class Seq extends nn.Module {
  seq = new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU(), new nn.Sequential(new nn.Linear(2, 2), new nn.Tanh()));
  override forward(x: Tensor): unknown {
    return this.seq.forward(x);
  }
}

class Lists extends nn.Module {
  ls = new nn.ModuleList(Array.from({ length: 3 }, () => new nn.Linear(2, 2)));
  d = new nn.ModuleDict({ snake_case: new nn.ReLU(), PascalCase: new nn.Tanh(), ALL_CAPS: new nn.Sigmoid() });
  override forward(x: unknown): unknown {
    for (const m of this.ls) x = m.call(x);
    return tuple(...["snake_case", "PascalCase", "ALL_CAPS"].map((name) => this.d.get(name)?.call(x)));
  }
}

class Shared extends nn.Module {
  a = new nn.Linear(2, 2);
  b = this.a;
  override forward(x: Tensor): Tensor {
    return add(this.b.forward(this.a.forward(x)), this.a.weight);
  }
}

class SubParameter extends nn.Module {
  emb = new nn.Embedding(5, 3);
  override forward(i: Tensor): Tensor {
    return matmul(this.emb.forward(i), this.emb.weight.t());
  }
}

class Constants extends nn.Module {
  override forward(x: Tensor): Tensor {
    return add(add(x, torch.tensor([float(1), float(2)])), torch.zeros(2));
  }
}

class DropoutBatchNorm extends nn.Module {
  bn = new nn.BatchNorm1d(4);
  do = new nn.Dropout(0.5);
  override forward(x: Tensor): Tensor {
    return this.do.forward(this.bn.forward(x));
  }
}

class Residual extends nn.Module {
  c1 = new nn.Conv2d(3, 3, 3, { padding: 1 });
  c2 = new nn.Conv2d(3, 3, 3, { padding: 1 });
  override forward(x: Tensor): Tensor {
    return F.relu(add(this.c2.forward(F.relu(this.c1.forward(x), { inplace: true })), x));
  }
}

class Attention extends nn.Module {
  q = new nn.Linear(8, 8);
  k = new nn.Linear(8, 8);
  v = new nn.Linear(8, 8);
  override forward(x: Tensor): Tensor {
    const [b, t, c] = [x.size(0), x.size(1), x.size(2)];
    const heads = (layer: nn.Linear): Tensor => {
      const projected = layer.forward(x);
      return projected.view(b, t, 2, operator.floordiv(c, 2) as number).transpose(1, 2);
    };
    const [q, k, v] = [heads(this.q), heads(this.k), heads(this.v)];
    const scores = operator.truediv(matmul(q, k.transpose(-2, -1)), float(2));
    const a = torch.softmax(scores, { dim: -1 });
    return matmul(a, v).transpose(1, 2).reshape(b, t, c);
  }
}

class StateDictIn extends nn.Module {
  override forward(d: object): unknown {
    let out = operator.getitem(d, "x") as Tensor;
    for (const key of ["y", "z"]) out = add(out, operator.getitem(d, key) as Tensor);
    return { out };
  }
}

class NoArguments extends nn.Module {
  p = new nn.Parameter(torch.ones(2));
  override forward(): Tensor {
    return add(this.p, 1);
  }
}

class Configured extends nn.Module {
  flag = true;
  override forward(x: Tensor): Tensor {
    return this.flag ? add(x, 1) : sub(x, 1);
  }
}

/** What makes the module of each case. */
export const MODULES = {
  M_linear: () => new Linear(),
  M_param: () => new Parameters(),
  M_nested: () => new Nested(),
  M_seq: () => new Seq(),
  M_list: () => new Lists(),
  M_shared: () => new Shared(),
  M_subparam: () => new SubParameter(),
  M_const: () => new Constants(),
  M_dropout_bn: () => new DropoutBatchNorm(),
  M_residual: () => new Residual(),
  M_attn: () => new Attention(),
  M_state_dict_in: () => new StateDictIn(),
  M_noargs: () => new NoArguments(),
  M_if_config: () => new Configured(),
  M_nested_all_leaf: () => new Nested(),
  M_param_buffers_as_proxies: () => new Parameters(),
  M_seq_no_leaf_relu_only: () => new nn.Sequential(new nn.ReLU(), new nn.Identity()),
};
