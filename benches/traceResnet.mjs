/**
 * tracefx's symbolic trace of ResNet-50: the number of nodes, and the median milliseconds of a trace after a warm-up.
 *
 * @module
 */
import { init, nn, operator, symbolicTrace, torch } from "../ts/dist/index.js";

/** @typedef {import("../ts/dist/index.js").Tensor} Tensor */

await init();

class Bottleneck extends nn.Module {
  /** @type {(inplanes: number, planes: number, stride: number, downsample: nn.Sequential | null) => void} */
  constructor(inplanes, planes, stride, downsample) {
    super();
    this.conv1 = new nn.Conv2d(inplanes, planes, 1, { bias: false });
    this.bn1 = new nn.BatchNorm2d(planes);
    this.conv2 = new nn.Conv2d(planes, planes, 3, { stride, padding: 1, bias: false });
    this.bn2 = new nn.BatchNorm2d(planes);
    this.conv3 = new nn.Conv2d(planes, planes * 4, 1, { bias: false });
    this.bn3 = new nn.BatchNorm2d(planes * 4);
    this.relu = new nn.ReLU({ inplace: true });
    this.downsample = downsample;
  }

  /** @type {(x: Tensor) => Tensor} */
  forward(x) {
    let out = this.relu.forward(this.bn1.forward(this.conv1.forward(x)));
    out = this.relu.forward(this.bn2.forward(this.conv2.forward(out)));
    out = this.bn3.forward(this.conv3.forward(out));
    const identity = this.downsample === null ? x : this.downsample.forward(x);
    return this.relu.forward(operator.add(out, identity));
  }
}

class ResNet50 extends nn.Module {
  #inplanes = 64;

  constructor() {
    super();
    this.conv1 = new nn.Conv2d(3, 64, 7, { stride: 2, padding: 3, bias: false });
    this.bn1 = new nn.BatchNorm2d(64);
    this.relu = new nn.ReLU({ inplace: true });
    this.maxpool = new nn.MaxPool2d(3, { stride: 2, padding: 1 });
    this.layer1 = this.#layer(64, 3, 1);
    this.layer2 = this.#layer(128, 4, 2);
    this.layer3 = this.#layer(256, 6, 2);
    this.layer4 = this.#layer(512, 3, 2);
    this.avgpool = new nn.AdaptiveAvgPool2d([1, 1]);
    this.fc = new nn.Linear(2048, 1000);
  }

  /** @type {(planes: number, blocks: number, stride: number) => nn.Sequential} */
  #layer(planes, blocks, stride) {
    const convolution = new nn.Conv2d(this.#inplanes, planes * 4, 1, { stride, bias: false });
    const downsample = new nn.Sequential(convolution, new nn.BatchNorm2d(planes * 4));
    const layers = [new Bottleneck(this.#inplanes, planes, stride, downsample)];
    this.#inplanes = planes * 4;
    while (layers.length < blocks) layers.push(new Bottleneck(this.#inplanes, planes, 1, null));
    return new nn.Sequential(...layers);
  }

  /** @type {(x: Tensor) => Tensor} */
  forward(x) {
    const stem = this.maxpool.forward(this.relu.forward(this.bn1.forward(this.conv1.forward(x))));
    const features = this.layer4.forward(this.layer3.forward(this.layer2.forward(this.layer1.forward(stem))));
    return this.fc.forward(torch.flatten(this.avgpool.forward(features), 1));
  }
}

/** @type {(run: () => void, warmUp: number, count: number) => number} */
function medianMs(run, warmUp, count) {
  for (let i = 0; i < warmUp; i++) run();
  const times = Array.from({ length: count }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return times.toSorted((a, b) => a - b)[count >> 1] ?? 0;
}

const model = new ResNet50();
const { graph } = symbolicTrace(model);
console.log(
  graph.nodes.length,
  medianMs(() => void symbolicTrace(model), 100, 200),
);
