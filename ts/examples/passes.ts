/** Writing a pass, and a rule that Rust can use too: the code of docs/passes.md. */
import {
  type GraphModule,
  init,
  PassBase,
  PassManager,
  type PassResult,
  Rule,
  RuleSet,
  symbolicTrace,
  type Tensor,
  torch,
} from "tracefx";

await init();

const model = (x: Tensor, y: Tensor): Tensor => torch.mul(torch.neg(torch.neg(torch.add(x, y))), torch.add(x, y));
const gm = symbolicTrace(model);

/** Calls of one function become calls of another. */
class Retarget extends PassBase {
  readonly #from: string;
  readonly #to: string;

  constructor(from: string, to: string) {
    super();
    this.#from = from;
    this.#to = to;
  }

  override call(graphModule: GraphModule): PassResult {
    const nodes = graphModule.graph.findNodes({ op: "call_function", target: this.#from });
    for (const node of nodes) node.target = this.#to;
    return { graphModule, modified: nodes.length > 0 };
  }

  override ensures(graphModule: GraphModule): void {
    graphModule.graph.lint();
  }
}

const { modified } = new PassManager({ passes: [new Retarget("torch.mul", "torch.maximum")] }).run(gm);
console.log(modified, `${gm.graph}`);

// A rule is a pattern and what takes its place, both traced.
const negOfNeg = new Rule(
  "neg_of_neg",
  (x: Tensor) => torch.neg(torch.neg(x)),
  (x: Tensor) => x,
);
const file = negOfNeg.save();

const { fired, isFixpoint } = new RuleSet([Rule.load(file)]).runToFixpoint(gm);
console.log(isFixpoint, fired.map(({ rule, replaced }) => `${rule}: ${replaced.join(", ")}`).join("; "));
gm.graph.lint();
console.log(`${gm.graph}`);
