/** ResNet, as torchvision has it: the same modules under the same names, so that PyTorch's weights load. */
import { init, nn, operator, type Tensor, torch } from "tracefx";

/** How a block makes the tensor that is added to its output as large as the output. */
type Downsample = nn.Sequential | null;

/** Two convolutions of 3 by 3. */
export class BasicBlock extends nn.Module {
  static readonly expansion = 1;
  conv1: nn.Conv2d;
  bn1: nn.BatchNorm2d;
  relu = new nn.ReLU({ inplace: true });
  conv2: nn.Conv2d;
  bn2: nn.BatchNorm2d;
  downsample: Downsample;

  constructor(inplanes: number, planes: number, stride = 1, downsample: Downsample = null) {
    super();
    this.conv1 = new nn.Conv2d(inplanes, planes, 3, { stride, padding: 1, bias: false });
    this.bn1 = new nn.BatchNorm2d(planes);
    this.conv2 = new nn.Conv2d(planes, planes, 3, { padding: 1, bias: false });
    this.bn2 = new nn.BatchNorm2d(planes);
    this.downsample = downsample;
  }

  override forward(x: Tensor): Tensor {
    const hidden = this.relu.forward(this.bn1.forward(this.conv1.forward(x)));
    const out = this.bn2.forward(this.conv2.forward(hidden));
    const identity = this.downsample === null ? x : this.downsample.forward(x);
    return this.relu.forward(operator.add(out, identity) as Tensor);
  }
}

/** A convolution of 3 by 3 between two of 1 by 1. */
export class Bottleneck extends nn.Module {
  static readonly expansion = 4;
  conv1: nn.Conv2d;
  bn1: nn.BatchNorm2d;
  conv2: nn.Conv2d;
  bn2: nn.BatchNorm2d;
  conv3: nn.Conv2d;
  bn3: nn.BatchNorm2d;
  relu = new nn.ReLU({ inplace: true });
  downsample: Downsample;

  constructor(inplanes: number, planes: number, stride = 1, downsample: Downsample = null) {
    super();
    this.conv1 = new nn.Conv2d(inplanes, planes, 1, { bias: false });
    this.bn1 = new nn.BatchNorm2d(planes);
    this.conv2 = new nn.Conv2d(planes, planes, 3, { stride, padding: 1, bias: false });
    this.bn2 = new nn.BatchNorm2d(planes);
    this.conv3 = new nn.Conv2d(planes, planes * Bottleneck.expansion, 1, { bias: false });
    this.bn3 = new nn.BatchNorm2d(planes * Bottleneck.expansion);
    this.downsample = downsample;
  }

  override forward(x: Tensor): Tensor {
    let out = this.relu.forward(this.bn1.forward(this.conv1.forward(x)));
    out = this.relu.forward(this.bn2.forward(this.conv2.forward(out)));
    out = this.bn3.forward(this.conv3.forward(out));
    const identity = this.downsample === null ? x : this.downsample.forward(x);
    return this.relu.forward(operator.add(out, identity) as Tensor);
  }
}

/** How a {@link ResNet} is made. */
export interface ResNetOptions {
  /** The number of classes; 1000 by default. */
  readonly numClasses?: number;
  /** The number of channels of the first blocks, of which the others have two, four and eight times as many; 64 by default. */
  readonly width?: number;
}

/** The residual network of He and others, 2015. */
export class ResNet extends nn.Module {
  conv1: nn.Conv2d;
  bn1: nn.BatchNorm2d;
  relu = new nn.ReLU({ inplace: true });
  maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 });
  layer1: nn.Sequential;
  layer2: nn.Sequential;
  layer3: nn.Sequential;
  layer4: nn.Sequential;
  avgpool: nn.AdaptiveAvgPool2d;
  fc: nn.Linear;
  #inplanes: number;

  constructor(
    block: typeof BasicBlock | typeof Bottleneck,
    layers: readonly [number, number, number, number],
    { numClasses = 1000, width = 64 }: ResNetOptions = {},
  ) {
    super();
    this.#inplanes = width;
    this.conv1 = new nn.Conv2d(3, width, 7, { stride: 2, padding: 3, bias: false });
    this.bn1 = new nn.BatchNorm2d(width);
    this.layer1 = this.#makeLayer(block, width, layers[0]);
    this.layer2 = this.#makeLayer(block, 2 * width, layers[1], 2);
    this.layer3 = this.#makeLayer(block, 4 * width, layers[2], 2);
    this.layer4 = this.#makeLayer(block, 8 * width, layers[3], 2);
    this.avgpool = new nn.AdaptiveAvgPool2d([1, 1]);
    this.fc = new nn.Linear(8 * width * block.expansion, numClasses);
    for (const module of this.modules()) {
      if (module instanceof nn.Conv2d) nn.init.kaimingNormal_(module.weight, { mode: "fan_out", nonlinearity: "relu" });
    }
  }

  override forward(x: Tensor): Tensor {
    let out = this.maxpool.forward(this.relu.forward(this.bn1.forward(this.conv1.forward(x))));
    out = this.layer4.forward(this.layer3.forward(this.layer2.forward(this.layer1.forward(out)))) as Tensor;
    return this.fc.forward(torch.flatten(this.avgpool.forward(out), 1));
  }

  #makeLayer(block: typeof BasicBlock | typeof Bottleneck, planes: number, blocks: number, stride = 1): nn.Sequential {
    const outplanes = planes * block.expansion;
    const downsample =
      stride === 1 && this.#inplanes === outplanes
        ? null
        : new nn.Sequential(
            new nn.Conv2d(this.#inplanes, outplanes, 1, { stride, bias: false }),
            new nn.BatchNorm2d(outplanes),
          );
    const first = new block(this.#inplanes, planes, stride, downsample);
    this.#inplanes = outplanes;
    const rest = Array.from({ length: blocks - 1 }, () => new block(outplanes, planes));
    return new nn.Sequential(first, ...rest);
  }
}

/** ResNet-18. */
export function resnet18(options?: ResNetOptions): ResNet {
  return new ResNet(BasicBlock, [2, 2, 2, 2], options);
}

/** ResNet-50. */
export function resnet50(options?: ResNetOptions): ResNet {
  return new ResNet(Bottleneck, [3, 4, 6, 3], options);
}

await init();
