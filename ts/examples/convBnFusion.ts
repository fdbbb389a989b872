/**
 * The tutorial on fusing convolutions with batch norms: in evaluation mode a batch norm scales and shifts its input, which
 * the weights of the convolution before it can do as well.
 */
import type { GraphModule } from "tracefx";
import { init, nn, type Node, symbolicTrace, type Tensor, torch } from "tracefx";

await init();
torch.manualSeed(0);

class WrappedBatchnorm extends nn.Module {
  mod = new nn.BatchNorm2d(1);
  override forward(x: Tensor): Tensor {
    return this.mod.forward(x);
  }
}

class M extends nn.Module {
  conv1 = new nn.Conv2d(1, 1, 1);
  bn1 = new nn.BatchNorm2d(1);
  conv2 = new nn.Conv2d(1, 1, 1);
  nested = new nn.Sequential(new nn.BatchNorm2d(1), new nn.Conv2d(1, 1, 1));
  wrapped = new WrappedBatchnorm();

  override forward(x: Tensor): Tensor {
    const first = this.bn1.forward(this.conv1.forward(x));
    return this.wrapped.forward(this.nested.forward(this.conv2.forward(first)) as Tensor);
  }
}

/** A convolution that does what this one and the batch norm after it do. */
function fuseConvBnEval(conv: nn.Conv2d, bn: nn.BatchNorm2d): nn.Conv2d {
  const mean = bn.getBuffer("running_mean");
  const scale = torch.mul(bn.getParameter("weight"), torch.rsqrt(torch.add(bn.getBuffer("running_var"), bn.eps)));
  const fused = new nn.Conv2d(conv.inChannels, conv.outChannels, conv.kernelSize, {
    stride: conv.stride,
    padding: conv.padding,
    dilation: conv.dilation,
    groups: conv.groups,
  });
  const shift = conv.attributes.has("bias") ? torch.sub(conv.getParameter("bias"), mean) : torch.neg(mean);
  fused.weight = new nn.Parameter(torch.mul(conv.weight, scale.reshape([-1, 1, 1, 1])));
  fused.bias = new nn.Parameter(torch.add(torch.mul(shift, scale), bn.getParameter("bias")));
  return fused.eval();
}

/** Fuses every convolution with the batch norm that alone uses its output. */
function fuse(model: nn.Module): GraphModule {
  const gm = symbolicTrace(model);
  const moduleOf = (node: Node): nn.Module | undefined =>
    node.op === "call_module" ? gm.getSubmodule(node.target) : undefined;
  for (const node of gm.graph.nodes) {
    const [input] = node.allInputNodes;
    if (input === undefined) continue;
    const [conv, bn] = [moduleOf(input), moduleOf(node)];
    if (!(conv instanceof nn.Conv2d && bn instanceof nn.BatchNorm2d)) continue;
    // The output of the convolution is used elsewhere too, where it must not be scaled.
    if (input.users.size > 1) continue;
    gm.addSubmodule(input.target, fuseConvBnEval(conv, bn));
    node.replaceAllUsesWith(input);
    gm.graph.eraseNode(node);
  }
  gm.graph.lint();
  gm.deleteAllUnusedSubmodules();
  gm.recompile();
  return gm;
}

const model = new M().eval();
// Statistics that do something.
for (const module of model.modules()) {
  if (!(module instanceof nn.BatchNorm2d)) continue;
  nn.init.uniform_(module.getBuffer("running_mean"));
  nn.init.uniform_(module.getBuffer("running_var"), 0.5, 1.5);
}
console.log(`${symbolicTrace(model).graph}`);
const fused = fuse(model);
console.log(`${fused.graph}`);
const x = torch.randn(5, 1, 1, 1);
console.log(torch.allclose(fused.forward(x) as Tensor, model.forward(x), { atol: 1e-6 }));
