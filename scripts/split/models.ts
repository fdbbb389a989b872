/** Models as users have them, made here, since the repository has no large files. */
import {
  Dim,
  type ExportedProgram,
  exportProgram,
  F,
  type Module,
  nn,
  save,
  type Tensor,
  tensor,
  torch,
  writeSafetensors,
} from "../../ts/src/index.ts";

/** A program and its inputs, both as files: a tensor is lost when the engine is made anew. */
export interface Sample {
  readonly file: Uint8Array;
  readonly inputs: Uint8Array;
}

/** What a layer gives. */
function through(layer: Module, ...inputs: Tensor[]): Tensor {
  return layer.call(...inputs) as Tensor;
}

/** MobileNet's block: wide pointwise convolutions around a depthwise one, and the way around them. */
class InvertedResidual extends nn.Module {
  readonly expand = new nn.Sequential(
    new nn.Conv2d(16, 96, 1, { bias: false }),
    new nn.BatchNorm2d(96),
    new nn.ReLU6(),
  );
  readonly depthwise = new nn.Sequential(
    new nn.Conv2d(96, 96, 3, { padding: 1, groups: 96, bias: false }),
    new nn.BatchNorm2d(96),
    new nn.ReLU6(),
  );
  readonly project = new nn.Sequential(new nn.Conv2d(96, 16, 1, { bias: false }), new nn.BatchNorm2d(16));

  override forward(x: Tensor): Tensor {
    return x.add(through(this.project, through(this.depthwise, through(this.expand, x))));
  }
}

/** A network of images with the layers that such networks have. */
function convolutions(): nn.Sequential {
  return new nn.Sequential(
    new nn.Conv2d(3, 16, 3, { stride: 2, padding: 1, bias: false }),
    new nn.BatchNorm2d(16),
    new nn.Hardswish(),
    new nn.Conv2d(16, 16, 3, { padding: 1, groups: 16, bias: false }),
    new nn.BatchNorm2d(16),
    new nn.ReLU6(),
    new InvertedResidual(),
    new nn.Conv2d(16, 64, 1),
    new nn.SiLU(),
    new nn.Conv2d(64, 64, 5, { padding: 2, stride: 2, groups: 64 }),
    new nn.LeakyReLU(0.1),
    new nn.Conv2d(64, 64, 3, { padding: 1 }),
    new nn.BatchNorm2d(64),
    new nn.ReLU(),
    new nn.Conv2d(64, 32, 3, { padding: 2, dilation: 2 }),
    new nn.Sigmoid(),
    new nn.ConvTranspose2d(32, 32, 2, { stride: 2 }),
    new nn.Tanh(),
    new nn.MaxPool2d(3, { stride: 2, padding: 1 }),
    new nn.AvgPool2d(2),
    new nn.AdaptiveAvgPool2d(1),
    new nn.Flatten(),
    new nn.Linear(32, 32),
    new nn.GELU(),
    new nn.LayerNorm(32),
    new nn.Linear(32, 10),
    new nn.Softmax(1),
  );
}

/** A network of words. */
class Words extends nn.Module {
  readonly embedding = new nn.Embedding(50, 32);
  readonly norm = new nn.LayerNorm(32);
  readonly attention = new nn.MultiheadAttention(32, 4, { batchFirst: true });

  override forward(tokens: Tensor, mask: Tensor): Tensor[] {
    const x = through(this.norm, through(this.embedding, tokens));
    const scores = torch.matmul(x, x.transpose(1, 2)).div(5.5).maskedFill(mask.eq(0), -1e9);
    const y = torch.einsum("bij,bjk->bik", torch.softmax(scores, -1), x).add(x);
    const [attended] = this.attention.call(y, y, y) as [Tensor, Tensor];
    const z = torch.where(attended.gt(0), attended, attended.mul(0.1));
    const first = z.get(torch.arange(2), tokens.argmax(-1)) as Tensor;
    const pooled = torch.cat([z.mean(1), z.amax(1), z.sum(1), z.select(1, 0), first], 1);
    return [pooled, pooled.argmax(-1)];
  }
}

/** Attention of a decoder: of a whole text, or of one more token beside those in a cache. */
class Decoder extends nn.Module {
  readonly project = new nn.Linear(64, 192);
  readonly output = new nn.Linear(64, 64);
  declare keys: Tensor;
  declare values: Tensor;
  readonly isCached: boolean;

  constructor(isCached: boolean) {
    super();
    this.isCached = isCached;
    for (const name of ["keys", "values"]) this.registerBuffer(name, torch.zeros(1, 4, 128, 16));
  }

  override forward(x: Tensor, position: Tensor): Tensor {
    const parts = through(this.project, x).split(64, { dim: 2 }) as Tensor[];
    const [query, key, value] = parts.map((it) => it.unflatten(2, [4, 16]).transpose(1, 2)) as [Tensor, Tensor, Tensor];
    if (!this.isCached) return this.merged(F.scaledDotProductAttention(query, key, value, { isCausal: true }));
    const [keys, values] = [this.keys.indexCopy_(2, position, key), this.values.indexCopy_(2, position, value)];
    const attnMask = torch.arange(128).le(position).view(1, 1, 1, 128);
    return this.merged(F.scaledDotProductAttention(query, keys, values, { attnMask }));
  }

  merged(it: Tensor): Tensor {
    return through(this.output, it.transpose(1, 2).flatten(2));
  }
}

/** Numbers that PyTorch's quantizers put around a convolution and a linear layer. */
class Quantized extends nn.Module {
  readonly conv = new nn.Conv2d(3, 8, 3);
  readonly linear = new nn.Linear(8, 4);

  override forward(x: Tensor): Tensor {
    const y = this.narrowed(torch.relu(through(this.conv, this.narrowed(x))));
    return this.narrowed(through(this.linear, y.mean([2, 3])));
  }

  narrowed(x: Tensor): Tensor {
    const { quantize_per_tensor: quantize, dequantize_per_tensor: dequantize } =
      torch.ops["quantized_decomposed"] ?? {};
    const narrow = quantize?.["default"]?.(x, 0.05, 3, -128, 127, torch.int8);
    return dequantize?.["default"]?.(narrow, 0.05, 3, -128, 127, torch.int8) as Tensor;
  }
}

/** A network that pools to several places, as AlexNet and VGG do. */
function pooling(): nn.Sequential {
  return new nn.Sequential(
    new nn.Conv2d(3, 8, 11, { stride: 4, padding: 2 }),
    new nn.ReLU(),
    new nn.AdaptiveAvgPool2d([6, 6]),
    new nn.Flatten(),
    new nn.Dropout(),
    new nn.Linear(288, 10),
  );
}

/** A model as an archive of PyTorch. */
function archived(model: Module, inputs: Tensor[]): Sample {
  return { ...sample(model, inputs), file: save(exported(model, inputs)) };
}

function exported(model: Module, inputs: Tensor[], dynamicShapes?: readonly object[]): ExportedProgram {
  // Their numbers are nobody's, and a bundler has written them anew.
  const options = { verify: false, checkSources: false, ...(dynamicShapes === undefined ? {} : { dynamicShapes }) };
  return exportProgram(model.eval(), inputs, {}, options);
}

function sample(model: Module, inputs: Tensor[], dynamicShapes?: readonly object[]): Sample {
  const named = Object.fromEntries(inputs.map((it, at) => [`in${at}`, it]));
  return { file: exported(model, inputs, dynamicShapes).toFxg(), inputs: writeSafetensors(named) };
}

/** Programs of all of them. The engine has to be loaded. */
export async function models(): Promise<Sample[]> {
  // These load the engine where it is not loaded.
  const [gpt2, lstm, resnet, vit] = await Promise.all([
    import("../../ts/examples/models/gpt2.ts"),
    import("../../ts/examples/models/lstm.ts"),
    import("../../ts/examples/models/resnet.ts"),
    import("../../ts/examples/models/vit.ts"),
  ]);
  const image = torch.randn(1, 3, 112, 112);
  const encoder = { imageSize: 64, patchSize: 8, numLayers: 2, numHeads: 4, hiddenDim: 64, mlpDim: 128 };
  const decoder = { nEmbd: 64, nHead: 4, nPositions: 128 };
  const batch = { 0: Dim("batch", { min: 1, max: 8 }) };
  const bottlenecks = new resnet.ResNet(resnet.Bottleneck, [3, 4, 6, 3], { numClasses: 10, width: 16 });
  return [
    sample(convolutions(), [image]),
    sample(convolutions().to(torch.float16), [image.to(torch.float16)]),
    sample(resnet.resnet18({ numClasses: 10 }), [torch.randn(2, 3, 64, 64)], [batch]),
    archived(bottlenecks, [image]),
    sample(pooling(), [image]),
    sample(new Words(), [torch.randint(0, 50, [2, 16]), torch.ones(2, 1, 16)]),
    sample(new vit.VisionTransformer(encoder), [torch.randn(2, 3, 64, 64)], [batch]),
    sample(new vit.VisionTransformer(encoder).to(torch.float16), [torch.randn(1, 3, 64, 64).to(torch.float16)]),
    sample(gpt2.gpt2Block(decoder), [torch.randn(1, 96, 64)]),
    sample(gpt2.gpt2Block(decoder), [torch.randn(1, 1, 64)]),
    sample(new Decoder(false), [torch.randn(1, 96, 64), tensor([0])]),
    sample(new Decoder(true), [torch.randn(1, 1, 64), tensor([5])]),
    sample(lstm.lstm({ inputSize: 5, hiddenSize: 8, numClasses: 3 }), [torch.randn(2, 6, 5)]),
    sample(new Quantized(), [torch.randn(1, 3, 16, 16)]),
  ];
}
