/** Vision transformers, as torchvision has them: the same modules under the same names, so that PyTorch's weights load. */
import { init, nn, slice, type Tensor, torch } from "tracefx";

/** How a {@link VisionTransformer} is made. */
export interface VisionTransformerOptions {
  readonly imageSize: number;
  readonly patchSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** The size of a token. */
  readonly hiddenDim: number;
  /** The size between the two layers of each MLP. */
  readonly mlpDim: number;
  /** The number of classes; 1000 by default. */
  readonly numClasses?: number;
}

type BlockOptions = Pick<VisionTransformerOptions, "numHeads" | "hiddenDim" | "mlpDim">;

/** Attention and an MLP, each behind a normalisation and beside the way around it. */
export class EncoderBlock extends nn.Module {
  ln_1: nn.LayerNorm;
  self_attention: nn.MultiheadAttention;
  ln_2: nn.LayerNorm;
  mlp: nn.Sequential;

  constructor({ numHeads, hiddenDim, mlpDim }: BlockOptions) {
    super();
    this.ln_1 = new nn.LayerNorm(hiddenDim, { eps: 1e-6 });
    this.self_attention = new nn.MultiheadAttention(hiddenDim, numHeads, { batchFirst: true });
    this.ln_2 = new nn.LayerNorm(hiddenDim, { eps: 1e-6 });
    // The second linear layer is number 3, behind a dropout.
    this.mlp = new nn.Sequential(
      new nn.Linear(hiddenDim, mlpDim),
      new nn.GELU(),
      new nn.Dropout(0),
      new nn.Linear(mlpDim, hiddenDim),
      new nn.Dropout(0),
    );
  }

  override forward(input: Tensor): Tensor {
    const hidden = this.ln_1.forward(input);
    const [attended] = this.self_attention.forward(hidden, hidden, hidden, { needWeights: false });
    const x = attended.add(input);
    return x.add(this.mlp.forward(this.ln_2.forward(x)));
  }
}

/** The blocks, with the places of the tokens before and a normalisation behind. */
export class Encoder extends nn.Module {
  pos_embedding: nn.Parameter;
  layers: nn.Sequential;
  ln: nn.LayerNorm;

  constructor(seqLength: number, numLayers: number, options: BlockOptions) {
    super();
    this.pos_embedding = new nn.Parameter(torch.empty(1, seqLength, options.hiddenDim));
    nn.init.normal_(this.pos_embedding, 0, 0.02);
    const names = Array.from({ length: numLayers }, (_, at) => `encoder_layer_${at}`);
    this.layers = new nn.Sequential(new Map(names.map((name) => [name, new EncoderBlock(options)])));
    this.ln = new nn.LayerNorm(options.hiddenDim, { eps: 1e-6 });
  }

  override forward(input: Tensor): Tensor {
    return this.ln.forward(this.layers.forward(input.add(this.pos_embedding)));
  }
}

/** The vision transformer of Dosovitskiy and others, 2020. */
export class VisionTransformer extends nn.Module {
  class_token: nn.Parameter;
  conv_proj: nn.Conv2d;
  encoder: Encoder;
  heads: nn.Sequential;
  readonly hiddenDim: number;
  readonly nPatches: number;

  constructor({ imageSize, patchSize, numLayers, numClasses = 1000, ...options }: VisionTransformerOptions) {
    super();
    this.hiddenDim = options.hiddenDim;
    this.nPatches = (imageSize / patchSize) ** 2;
    this.class_token = new nn.Parameter(torch.zeros(1, 1, options.hiddenDim));
    this.conv_proj = new nn.Conv2d(3, options.hiddenDim, patchSize, { stride: patchSize });
    this.encoder = new Encoder(this.nPatches + 1, numLayers, options);
    this.heads = new nn.Sequential({ head: new nn.Linear(options.hiddenDim, numClasses) });
  }

  override forward(x: Tensor): Tensor {
    const n = x.shape[0] as number;
    const patches = this.conv_proj.forward(x).reshape(n, this.hiddenDim, this.nPatches).permute(0, 2, 1);
    const tokens = torch.cat([this.class_token.expand(n, -1, -1), patches], 1);
    return this.heads.forward(this.encoder.forward(tokens).get(slice(null), 0));
  }
}

/** ViT-Ti/16: twelve layers of three heads for images of 224 by 224. */
export function vitTi16(options: Partial<VisionTransformerOptions> = {}): VisionTransformer {
  return new VisionTransformer({
    imageSize: 224,
    patchSize: 16,
    numLayers: 12,
    numHeads: 3,
    hiddenDim: 192,
    mlpDim: 768,
    ...options,
  });
}

await init();
