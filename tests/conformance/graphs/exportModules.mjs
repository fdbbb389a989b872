/**
 * The modules of the kind `export`, as TypeScript writes them, by the name of their class in Python.
 *
 * @module
 */
import { Dim, F, float, nn, operator, slice, tensor, torch, tuple } from "tracefx";

/** @typedef {import("tracefx").Tensor} Tensor */
/** @typedef {(name: string) => Tensor} InputOf */
/**
 * @typedef {object} Counterpart
 * @property {() => nn.Module} module
 * @property {(input: InputOf) => [args: unknown[], kwargs?: Record<string, unknown>]} [inputs] the inputs, of those that were
 *   recorded; by default all of them in their order
 * @property {() => import("tracefx").DynamicShapes} [dynamic] what was said of the sizes in the cases with dynamic ones
 */

class Linear extends nn.Module {
  lin = new nn.Linear(4, 3);
  constructor() {
    super();
    this.registerBuffer("scale", torch.ones(3));
  }

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return torch.relu(this.lin.forward(x)).mul(this.getBuffer("scale"));
  }
}

class BufferMutation extends nn.Module {
  constructor() {
    super();
    this.registerBuffer("n", torch.zeros(1));
  }

  /** @override */
  forward(/** @type {Tensor} */ x) {
    this.getBuffer("n").add_(1);
    return x.add(this.getBuffer("n"));
  }
}

class InputMutation extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    x.mul_(2);
    return x.add(1);
  }
}

class Constants extends nn.Module {
  c = tensor([1, 2], { dtype: "float32" });

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return tuple(x.add(this.c).add(torch.tensor([float(3), float(4)])), null, 7);
  }
}

class Nested extends nn.Module {
  /** @override */
  forward(/** @type {{ a: Tensor, b: Tensor[] }} */ d, /** @type {{ k: Tensor }} */ { k }) {
    return { out: d.a.add(/** @type {Tensor} */ (d.b[0]).mul(k)) };
  }
}

class ConvBn extends nn.Module {
  c = new nn.Conv2d(2, 3, 3, { padding: 1 });
  bn = new nn.BatchNorm2d(3);

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return F.relu(this.bn.forward(this.c.forward(x)));
  }
}

class Split extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    const [a, b] = torch.split(x, 2, { dim: 1 });
    return tuple(
      torch.matmul(/** @type {Tensor} */ (a), /** @type {Tensor} */ (b).transpose(0, 1)),
      torch.topk(x, 2)[0],
    );
  }
}

class Sdpa extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ q, /** @type {Tensor} */ k, /** @type {Tensor} */ v) {
    return F.scaledDotProductAttention(q, k, v);
  }
}

class LayerNorm extends nn.Module {
  ln = new nn.LayerNorm(4);

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return F.gelu(this.ln.forward(x)).softmax(-1);
  }
}

class Views extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    const y = x.view(-1);
    y.add_(1);
    return x.t().reshape(2, 4).flatten();
  }
}

class NonPersistent extends nn.Module {
  constructor() {
    super();
    this.registerBuffer("pb", torch.ones(2), { persistent: false });
  }

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return x.add(this.getBuffer("pb"));
  }
}

class Shared extends nn.Module {
  a = new nn.Linear(2, 2);
  b = this.a;

  /** @override */
  forward(/** @type {Tensor} */ x) {
    return this.b.forward(this.a.forward(x));
  }
}

class Pool extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    return F.adaptiveAvgPool2d(F.maxPool2d(x, 2), 1).flatten(1);
  }
}

class Dynamic extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x, /** @type {Tensor} */ y) {
    return tuple(operator.add(torch.cat([x, y]).sum(), x.shape[0]), x.reshape(-1));
  }
}

class Where extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    return tuple(
      torch.where(x.gt(0), x, torch.exp(x).sub(1)),
      x.maskedFill(x.lt(0), float(0)),
      x.get(slice(null), slice(1, null)),
      x[0],
    );
  }
}

/** @type {Readonly<Record<string, Counterpart>>} */
export const MODULES = {
  E_linear: { module: () => new Linear(), dynamic: () => [{ 0: Dim("batch", { min: 0 }) }] },
  E_bufmut: { module: () => new BufferMutation() },
  E_inmut: { module: () => new InputMutation() },
  E_const: { module: () => new Constants() },
  E_nested: {
    module: () => new Nested(),
    inputs: (input) => [[{ a: input("d_a"), b: [input("d_b_0")] }], { k: input("k") }],
  },
  E_conv_bn: { module: () => new ConvBn() },
  E_split: { module: () => new Split() },
  // It was recorded with one tensor in all three places.
  E_sdpa: { module: () => new Sdpa(), inputs: (input) => [((v) => [v, v, v])(input("v"))] },
  E_ln: { module: () => new LayerNorm() },
  E_views: { module: () => new Views() },
  E_nonpersist: { module: () => new NonPersistent() },
  E_shared: { module: () => new Shared() },
  E_pool: { module: () => new Pool() },
  E_dyn: {
    module: () => new Dynamic(),
    dynamic: () => [{ 0: Dim("n", { max: 64 }) }, { 0: Dim("n", { max: 64 }) }],
  },
  E_where: { module: () => new Where() },
};
