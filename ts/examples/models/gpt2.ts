/** A block of GPT-2, as Hugging Face's transformers have it: the same modules under the same names, so that its weights load. */
import { float, init, nn, slice, type Tensor, torch } from "tracefx";

/** How a {@link GPT2Block} is made; by default as those of the smallest GPT-2. */
export interface GPT2Options {
  /** The size of a token; 768 by default. */
  readonly nEmbd?: number;
  /** The number of heads; 12 by default. */
  readonly nHead?: number;
  /** The longest sequence; 1024 by default. */
  readonly nPositions?: number;
}

/** A linear layer whose weight lies the other way round. */
export class Conv1D extends nn.Module {
  weight: nn.Parameter;
  bias: nn.Parameter;
  readonly nf: number;

  constructor(nf: number, nx: number) {
    super();
    this.nf = nf;
    this.weight = new nn.Parameter(torch.empty(nx, nf));
    this.bias = new nn.Parameter(torch.zeros(nf));
    nn.init.normal_(this.weight, 0, 0.02);
  }

  override forward(x: Tensor): Tensor {
    const [batch, length, width] = x.shape as [number, number, number];
    return torch.addmm(this.bias, x.view(-1, width), this.weight).view(batch, length, this.nf);
  }
}

/** The GELU of Google's BERT and of GPT-2, by the hyperbolic tangent. */
export class NewGELUActivation extends nn.Module {
  override forward(x: Tensor): Tensor {
    const inner = x.add(torch.pow(x, 3).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
    return x.mul(0.5).mul(torch.tanh(inner).add(1));
  }
}

/** The score of what is not seen. It is a whole number, and no int. */
const LEAST = float(torch.finfo(torch.float32).min);

/** Attention to what came before. */
export class GPT2Attention extends nn.Module {
  c_attn: Conv1D;
  c_proj: Conv1D;
  declare bias: Tensor;
  readonly nHead: number;
  readonly headDim: number;

  constructor({ nEmbd, nHead, nPositions }: Required<GPT2Options>) {
    super();
    this.nHead = nHead;
    this.headDim = nEmbd / nHead;
    this.c_attn = new Conv1D(3 * nEmbd, nEmbd);
    this.c_proj = new Conv1D(nEmbd, nEmbd);
    const mask = torch.tril(torch.ones([nPositions, nPositions], { dtype: torch.bool }));
    this.registerBuffer("bias", mask.view(1, 1, nPositions, nPositions), { persistent: false });
  }

  override forward(x: Tensor): Tensor {
    const [batch, length] = x.shape as [number, number];
    const heads = (it: Tensor): Tensor => it.view(batch, length, this.nHead, this.headDim).transpose(1, 2);
    const [query, key, value] = this.c_attn
      .forward(x)
      .split(this.nHead * this.headDim, { dim: 2 })
      .map(heads) as [Tensor, Tensor, Tensor];
    const scores = torch.matmul(query, key.transpose(-1, -2)).div(Math.sqrt(this.headDim));
    const isSeen = this.bias.get(slice(null), slice(null), slice(length), slice(length));
    const weights = torch.where(isSeen, scores, LEAST).softmax(-1);
    const merged = torch.matmul(weights, value).transpose(1, 2).contiguous();
    return this.c_proj.forward(merged.view(batch, length, this.nHead * this.headDim));
  }
}

/** Two layers, the first of them four times as wide. */
export class GPT2MLP extends nn.Module {
  c_fc: Conv1D;
  c_proj: Conv1D;
  act = new NewGELUActivation();

  constructor(nEmbd: number) {
    super();
    this.c_fc = new Conv1D(4 * nEmbd, nEmbd);
    this.c_proj = new Conv1D(nEmbd, 4 * nEmbd);
  }

  override forward(x: Tensor): Tensor {
    return this.c_proj.forward(this.act.forward(this.c_fc.forward(x)));
  }
}

/** Attention and an MLP, each behind a normalisation and beside the way around it. */
export class GPT2Block extends nn.Module {
  ln_1: nn.LayerNorm;
  attn: GPT2Attention;
  ln_2: nn.LayerNorm;
  mlp: GPT2MLP;

  constructor({ nEmbd = 768, nHead = 12, nPositions = 1024 }: GPT2Options = {}) {
    super();
    this.ln_1 = new nn.LayerNorm(nEmbd, { eps: 1e-5 });
    this.attn = new GPT2Attention({ nEmbd, nHead, nPositions });
    this.ln_2 = new nn.LayerNorm(nEmbd, { eps: 1e-5 });
    this.mlp = new GPT2MLP(nEmbd);
  }

  override forward(x: Tensor): Tensor {
    const attended = this.attn.forward(this.ln_1.forward(x)).add(x);
    return attended.add(this.mlp.forward(this.ln_2.forward(attended)));
  }
}

/** A block of the smallest GPT-2. */
export function gpt2Block(options?: GPT2Options): GPT2Block {
  return new GPT2Block(options);
}

await init();
