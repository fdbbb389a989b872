/** The modules of `tests/oracle/gen_export_calls.py` in TypeScript, by the same names. */
import { cond, F, nn, type Tensor, torch, tuple } from "../../src/index.ts";

type Leaf2 = { a: Tensor; b: [Tensor, Tensor] };

class Leaf extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor, ys: Tensor[], { other }: { other: Tensor }): Leaf2 {
    const [first, second] = ys as [Tensor, Tensor];
    const h = this.fc.forward(x.add(first.mul(second)).add(other));
    return { a: h.sin(), b: tuple(h.cos(), x) as unknown as [Tensor, Tensor] };
  }
}

class Containers extends nn.Module {
  leaf = new Leaf();
  plain = new nn.Linear(4, 4);

  override forward(x: Tensor): unknown {
    const y = this.leaf.call(x, [x.add(1), x.sin()], { other: x.cos() }) as Leaf2;
    return tuple(this.plain.forward(y.a).add(y.b[0]), y.b[1]);
  }
}

class Twice extends nn.Module {
  leaf = new Leaf();
  plain = new nn.Linear(4, 4);

  override forward(x: Tensor): unknown {
    const y = this.leaf.call(x, [x.add(1), x.sin()], { other: x.cos() }) as Leaf2;
    const z = this.leaf.call(this.plain.forward(x), [x, x], { other: x }) as Leaf2;
    return tuple(y.a.add(z.b[0]), y.b[1], y.b[0].add(z.a));
  }
}

class Parts extends nn.Module {
  override forward(x: Tensor, n: number, _flag: boolean, _nothing: null): unknown {
    const [a, b] = x.chunk(2, -1) as [Tensor, Tensor];
    return tuple(a.mul(n), null, tuple(b, 3));
  }
}

class Around extends nn.Module {
  parts = new Parts();

  override forward(x: Tensor): Tensor {
    const [a, , [b, n]] = this.parts.call(x.add(1), 2, true, null) as [Tensor, null, [Tensor, number]];
    return a.mul(n).add(b);
  }
}

class Nested extends nn.Module {
  around = new Around();

  override forward(x: Tensor): unknown {
    return tuple(this.around.forward(x).sub(1), x.chunk(2, -1)[1]);
  }
}

class Counting extends nn.Module {
  declare count: Tensor;

  constructor() {
    super();
    this.registerBuffer("count", torch.zeros([]));
  }

  override forward(x: Tensor): Tensor {
    this.count.add_(1);
    x.mul_(2);
    return x.add(this.count);
  }
}

class Writes extends nn.Module {
  counting = new Counting();

  override forward(x: Tensor): unknown {
    const y = x.clone();
    return tuple(this.counting.forward(y), y);
  }
}

class Conditional extends nn.Module {
  override forward(x: Tensor): Tensor {
    const [y] = cond(
      x.sum().gt(0),
      (it: Tensor) => tuple(it.sin()),
      (it: Tensor) => tuple(it.cos()),
      [x],
    ) as unknown as [Tensor];
    return y;
  }
}

class Branch extends nn.Module {
  branch = new Conditional();

  override forward(x: Tensor): Tensor {
    return this.branch.forward(x.add(1)).mul(2);
  }
}

class Hooks extends nn.Module {
  leaf = new nn.Linear(4, 4);

  constructor() {
    super();
    this.leaf.registerForwardPreHook((_module, [x]) => [(x as Tensor).mul(2)]);
    this.leaf.registerForwardHook((_module, _args, output) => (output as Tensor).add(1));
  }

  override forward(x: Tensor): Tensor {
    return this.leaf.forward(x).relu();
  }
}

class Unused extends nn.Module {
  unused = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    return x.add(1);
  }
}

class NoGrad extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    const y = this.fc.forward(x);
    const [z, w] = torch.noGrad(() => {
      const inner = y.sin();
      return [inner, this.fc.forward(inner)] as const;
    });
    return w.add(z);
  }
}

class GradNested extends nn.Module {
  override forward(x: Tensor): Tensor {
    torch.noGrad(() => {});
    const c = torch.noGrad(() => {
      const a = x.mul(2);
      const b = torch.enableGrad(() => a.mul(3));
      return b.add(a);
    });
    const d = torch.setGradEnabled(true, () => c.sin());
    torch.setGradEnabled(false);
    return d.add(x);
  }
}

class GradWrites extends nn.Module {
  declare mean: Tensor;

  constructor() {
    super();
    this.registerBuffer("mean", torch.zeros(4));
  }

  override forward(x: Tensor): Tensor {
    torch.noGrad(() => this.mean.mul_(0.9).add_(x.mean(0), { alpha: 0.1 }));
    return x.sub(this.mean).add(torch.tensor([1.5, 2.5, 3.5, 4.5]));
  }
}

class Without extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    return torch.noGrad(() => this.fc.forward(x));
  }
}

class GradInModule extends nn.Module {
  inner = new Without();

  override forward(x: Tensor): Tensor {
    return this.inner.forward(x).add(this.inner.forward(x.add(1)));
  }
}

class Autocast extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    const y = torch.autocast("cpu", { dtype: torch.bfloat16 }, () => this.fc.forward(x).add(x).softmax(-1));
    return y.mul(2);
  }
}

class AutocastNested extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor): unknown {
    const z = torch.autocast("cpu", () => {
      const y = x.matmul(x.t());
      return torch.autocast("cpu", { enabled: false }, () => y.float().matmul(x));
    });
    const w = torch.noGrad(() => torch.autocast("cpu", { dtype: "float16" }, () => this.fc.forward(x)));
    return tuple(z, w, torch.cat([x, x]));
  }
}

class AutocastComposites extends nn.Module {
  w = new nn.Parameter(torch.randn(4, 4));
  k = new nn.Parameter(torch.randn(3, 4, 4));

  override forward(x: Tensor): unknown {
    return torch.autocast("cpu", () => {
      const a = torch.einsum("bi,ij->bj", x, this.w);
      const b = torch.linalg.multiDot([x, this.w, this.w]);
      const c = torch.einsum("bi,bj->bij", x, x);
      const d = F.bilinear(x, x, this.k);
      const e = torch.tensordot(x, this.w, 1);
      const f = F.cosineSimilarity(a, b);
      const g = F.crossEntropy(a, x.argmax(1));
      const h = torch.inner(x, this.w);
      const i = F.layerNorm(a, [4]);
      return tuple(a, b, c, d, e, f, g, h, i, torch.cat([a, x]));
    });
  }
}

class AutocastWithin extends nn.Module {
  w = new nn.Parameter(torch.randn(4, 4));

  override forward(x: Tensor): unknown {
    const product = (it: Tensor): Tensor => torch.einsum("bi,ij->bj", it, this.w);
    const inner = torch.autocast("cpu", () => {
      const a = product(x);
      const [b, c] = torch.autocast("cpu", { enabled: false }, () => {
        const plain = product(x);
        return [plain, torch.autocast("cpu", { dtype: "float16" }, () => product(plain))] as const;
      });
      return [a, b, c, torch.autocast("cuda", { enabled: false }, () => product(b))] as const;
    });
    return tuple(
      ...inner,
      torch.autocast("cuda", { enabled: false }, () => product(x)),
    );
  }
}

/**
 * The modules, each of which takes one tensor. `preserved_aliases` is left out: by which of its names a module is called,
 * JavaScript does not tell, so that a call of `b` is the second one of `a`. `out_arguments` is {@link OutArguments}: PyTorch
 * records overloads that write.
 */
export const CALLS: Readonly<Record<string, () => nn.Module>> = {
  preserved_containers: () => new Containers(),
  preserved_twice: () => new Twice(),
  preserved_nested: () => new Nested(),
  preserved_writes: () => new Writes(),
  preserved_branch: () => new Branch(),
  preserved_hooks: () => new Hooks(),
  preserved_unused: () => new Unused(),
  no_grad: () => new NoGrad(),
  grad_nested: () => new GradNested(),
  grad_writes: () => new GradWrites(),
  grad_in_module: () => new GradInModule(),
  autocast: () => new Autocast(),
  autocast_nested: () => new AutocastNested(),
  autocast_composites: () => new AutocastComposites(),
  autocast_within: () => new AutocastWithin(),
};

/** Results that are written to tensors that are given for them. */
export class OutArguments extends nn.Module {
  override forward(x: Tensor, y: Tensor): unknown {
    const a = torch.empty(2, 4);
    torch.add(x, y, { out: a });
    const b = torch.mul(a, 2, { out: torch.empty(2, 4) });
    const [values, indices] = [torch.empty(2), torch.empty([2], { dtype: "int64" })];
    torch.max(x, 1, { out: [values, indices] });
    return tuple(a, b, values, indices);
  }
}
