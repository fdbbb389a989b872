/** Builds a graph from nothing, with proxies: what is called on them is appended to the graph. */
import { Graph, GraphModule, init, Proxy, type Tensor, torch } from "tracefx";

await init();

const graph = new Graph();
const rawX = graph.placeholder("x");
const rawY = graph.placeholder("y");
const [x, y] = [new Proxy(rawX), new Proxy(rawY)];

// Functions and methods both record themselves.
const a = torch.cat([x, y]);
const b = torch.tanh(a);
const c = torch.neg(b);
const z = c.add(b) as Proxy;
graph.output(z.node);

const gm = new GraphModule({}, graph);
gm.graph.printTabular();
console.log(`${gm.forward(torch.tensor([1.5]), torch.tensor([-2.5])) as Tensor}`);
