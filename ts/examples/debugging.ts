/** A debugging session: a transformation with a mistake, and the tools that show it. */
import { FxError, init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

class M extends nn.Module {
  override forward(x: Tensor, y: Tensor): Tensor {
    return torch.mul(torch.add(x, y), y);
  }
}

// 1. What was traced? Print the graph, the table, or the code.
const traced = symbolicTrace(new M());
console.log(traced.code);

// 2. Is the graph well formed? lint says everything that is wrong: here a node uses what stands after it.
const [, y] = traced.graph.nodes;
const [add, mul] = [...traced.graph.nodes].filter(({ op }) => op === "call_function");
if (y === undefined || add === undefined || mul === undefined) throw new Error("the graph has other nodes");
add.args = [mul, y];
try {
  traced.graph.lint();
} catch (error) {
  if (!(error instanceof FxError)) throw error;
  console.log(error.code, error.reason);
}

// 3. Does it give the same numbers? Compare with the module, or let the trace do it.
const fresh = symbolicTrace(new M(), { verify: [torch.randn(3), torch.randn(3)] });
const [a, b] = [torch.randn(4), torch.randn(4)];
console.log(torch.equal(fresh.forward(a, b) as Tensor, new M().forward(a, b)));

// 4. Where does an error come from? It names the node, and the line that was traced.
try {
  fresh.forward(torch.ones(2), torch.ones(3));
} catch (error) {
  if (!(error instanceof FxError)) throw error;
  console.log(
    error.kind,
    error.node,
    error.notes.some((note) => note.includes("debugging.ts")),
  );
}
