/** Inlines functions: calls of wrapped functions are replaced by the nodes of their own graphs. */
import type { GraphModule } from "tracefx";
import { init, nn, type Node, Proxy, symbolicTrace, type Tensor, torch, Tracer, wrap } from "tracefx";

await init();

// Wrapped, the function is one node of a trace.
const ourFunction = wrap(function sinPlusCos(x: Tensor): Tensor {
  return torch.add(torch.sin(x), torch.cos(x));
});
const itself = (x: Tensor): Tensor => torch.add(torch.sin(x), torch.cos(x));

class M extends nn.Module {
  override forward(x: Tensor): Tensor {
    return ourFunction(x).relu();
  }
}

const traced = symbolicTrace(new M());
console.log(`${traced.graph}`);

/** Replaces each call of a function by what the function does, traced with proxies around the arguments of the call. */
function inline(gm: GraphModule, target: string, fn: (x: Tensor) => Tensor): GraphModule {
  for (const node of gm.graph.nodes) {
    if (node.op !== "call_function" || node.target !== target) continue;
    gm.graph.insertingBefore(node, () => {
      const result = fn(new Proxy(node.args[0] as Node)) as Proxy;
      node.replaceAllUsesWith(result.node);
    });
    gm.graph.eraseNode(node);
  }
  gm.recompile();
  return gm;
}

const inlined = inline(traced, ourFunction.target, itself);
console.log(`${inlined.graph}`);

// Tracing a graph module again inlines it too.
console.log(`${new Tracer().trace(inlined)}`);
