import { beforeAll, expect, test } from "vitest";
import {
  exportProgram,
  Graph,
  GraphModule,
  init,
  Interpreter,
  nn,
  type Node,
  symbolicTrace,
  type Tensor,
  torch,
  Tracer,
} from "../../src/index.ts";

beforeAll(() => init());

/** Reads a member that the types do not have. */
function read(object: object, name: string): () => unknown {
  return () => Reflect.get(object, name);
}

test("members by Python's names are answered with ours", () => {
  const net = new nn.Linear(2, 2);
  const x = torch.ones([2, 2]);
  const gm = symbolicTrace(net);
  const program = exportProgram(net, [x]);
  const cases: readonly (readonly [object, string, string])[] = [
    [gm.graph, "call_function", "callFunction"],
    [gm.graph, "eliminate_dead_code", "eliminateDeadCode"],
    [gm.graph.outputNode() as Node, "all_input_nodes", "allInputNodes"],
    [gm.graph.outputNode() as Node, "replace_all_uses_with", "replaceAllUsesWith"],
    [gm, "print_readable", "printReadable"],
    [net, "named_parameters", "namedParameters"],
    [new nn.Sequential(net), "state_dict", "stateDict"],
    [new Interpreter(gm), "fetch_attr", "fetchAttr"],
    [new Tracer(), "is_leaf_module", "isLeafModule"],
    [x, "log_softmax", "logSoftmax"],
    [x, "requires_grad", "requiresGrad"],
    [torch, "log_softmax", "logSoftmax"],
    [torch, "no_grad", "noGrad"],
    [program, "run_decompositions", "runDecompositions"],
    [program, "graph_module", "graphModule"],
    [program.graphSignature, "user_inputs", "userInputs"],
  ];
  for (const [object, name, ours] of cases) {
    expect(read(object, name), name).toThrow(`did you mean \`${ours}\`?`);
  }
});

test("what PyTorch has in other places is told where it is", () => {
  expect(read(torch, "nn")).toThrow('import { nn } from "tracefx"');
  expect(read(torch, "export")).toThrow("exportProgram");
  expect(read(torch.ones([1]), "numpy")).toThrow("`x.data` has the elements");
  expect(read(new Graph(), "python_code")).toThrow("graph.generateCode()");
});

test("positions of lists are answered, where JavaScript would say nothing", () => {
  expect(read(new Graph().nodes, "0")).toThrow("write at(0)");
  expect(read(new nn.Sequential(new nn.ReLU()), "-1")).toThrow("write at(-1)");
});

test("other members that are missing stay missing", async () => {
  const net = new nn.Linear(2, 2);
  for (const object of [net, new Graph(), torch.ones([1]), torch, new Interpreter(symbolicTrace(net))]) {
    expect(read(object, "no_such_member")()).toBeUndefined();
    expect(read(object, "__len__")()).toBeUndefined();
    expect("state_dict" in object || "call_function" in object).toBe(false);
    expect(Object.prototype.hasOwnProperty.call(object, "call_function")).toBe(false);
    expect(`${typeof (await object)}`).toBe(typeof object);
  }
  expect(JSON.stringify(new Graph().nodes)).toBe("{}");
});

test("a field of a subclass in Python's spelling is a field", () => {
  class Net extends nn.Module {
    named_parameters = 3;
    linear = new nn.Linear(2, 2);
    override forward(x: Tensor): Tensor {
      return this.linear(x);
    }
  }
  expect(new Net().named_parameters).toBe(3);
  expect(new GraphModule(new Net(), symbolicTrace(new Net()).graph).namedParameters().size).toBe(2);
});

test("methods that would override nothing are refused", () => {
  class Shapes extends Interpreter {
    run_node(node: Node): unknown {
      return super.runNode(node);
    }
  }
  class Leafless extends Tracer {
    is_leaf_module(): boolean {
      return false;
    }
  }
  class Deeper extends Shapes {}
  const gm = symbolicTrace(new nn.ReLU());
  expect(() => new Shapes(gm)).toThrow("did you mean `runNode`?");
  expect(() => new Deeper(gm)).toThrow("Deeper overrides `run_node`, which Interpreter does not call");
  expect(() => new Leafless()).toThrow("did you mean `isLeafModule`?");
});
