/** Custom tracers: which modules are leaves, and where each node came from. */
import type { Graph } from "tracefx";
import { GraphModule, init, nn, type Node, type Tensor, torch, Tracer } from "tracefx";

await init();

class MySpecialSubmodule extends nn.Module {
  override forward(x: Tensor): Tensor {
    return torch.neg(x);
  }
}

class M extends nn.Module {
  linear = new nn.Linear(3, 4);
  submod = new MySpecialSubmodule();

  override forward(x: Tensor): Tensor {
    return this.submod.forward(this.linear.forward(x));
  }
}

/** Takes our own module for a leaf, besides those of `nn`. */
class MyCustomTracer extends Tracer {
  override isLeafModule(m: nn.Module, path: string): boolean {
    return m instanceof MySpecialSubmodule || super.isLeafModule(m, path);
  }
}

console.log(`${new Tracer().trace(new M())}`);
console.log(`${new MyCustomTracer().trace(new M())}`);

/** Notes in each node the path of the module in which it was recorded. */
class ModulePathTracer extends Tracer {
  readonly nodeToOriginatingModule = new Map<Node, string>();

  override createNode(...call: Parameters<Tracer["createNode"]>): Node {
    const node = super.createNode(...call);
    this.nodeToOriginatingModule.set(node, this.nodeNameToScope.get(node.name)?.path ?? "");
    return node;
  }
}

const tracer = new ModulePathTracer();
const graph: Graph = tracer.trace(new M());
const gm = new GraphModule(tracer.root, graph);
for (const node of gm.graph.nodes) {
  console.log("Node", node.name, "is from module", JSON.stringify(tracer.nodeToOriginatingModule.get(node)));
}
