import { beforeAll, expect, test } from "vitest";
import {
  CodeGen,
  exportProgram,
  Graph,
  GraphModule,
  init,
  Interpreter,
  nn,
  type Node,
  OperatorSupport,
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
  for (const name of ["func", "vmap", "cond", "while_loop", "autograd", "utils", "jit"])
    expect(read(torch, name), name).toThrow(/import \{ \w+.* \} from "tracefx"/);
  expect(read(torch, "get_default_dtype")).toThrow("float32");
  expect(read(new nn.ReLU(), "cuda")).toThrow('program.module({ device: "gpu" })');
  expect(read(symbolicTrace(new nn.ReLU()), "to_folder")).toThrow('"tracefx/node"');
  expect(read(symbolicTrace(new nn.ReLU()).graph.nodes.at(0) as Node, "normalized_arguments")).toThrow("(node, gm)");
  expect(read(torch.ones([1]), "numpy")).toThrow("`x.data` has the elements");
  expect(read(new Graph(), "python_code")).toThrow("graph.generateCode()");
});

test("positions of lists are answered, where JavaScript would say nothing", () => {
  expect(read(new Graph().nodes, "0")).toThrow("write at(0)");
  expect(read(new Graph().nodes, "-1")).toThrow("write at(-1)");
});

test("positions of containers are what they are in JavaScript, so that loops end and consoles look into them", () => {
  const list = new nn.ParameterList([torch.ones([1])]);
  for (const it of [new nn.Sequential(new nn.ReLU()), new nn.ModuleList([new nn.ReLU()]), list]) {
    expect(Reflect.get(it, "0")).toBeDefined();
    expect([Reflect.get(it, "1"), Reflect.get(it, "-1")]).toEqual([undefined, undefined]);
  }
});

test("everything is an object", () => {
  const gm = symbolicTrace(new nn.ReLU());
  const program = exportProgram(new nn.ReLU(), [torch.ones([1])]);
  const objects = [gm, gm.graph, gm.graph.nodes, gm.graph.nodes.at(0), new nn.ReLU(), torch, torch.ones([1])];
  for (const it of [...objects, program, program.graphSignature, new Interpreter(gm), new Tracer()]) {
    expect(it instanceof Object, String(it)).toBe(true);
  }
});

test("what a class of one's own has is not meant, whatever its spelling", () => {
  class Net extends nn.Module {
    maxLen = 3;
    get inDim(): number {
      return 2;
    }
    override forward(x: Tensor): Tensor {
      return x;
    }
  }
  class Wide extends nn.Linear {
    maxLen = 3;
  }
  class Run extends Interpreter {
    maxLen = 3;
  }
  const gm = symbolicTrace(new Net());
  gm.addModule("maxLen", new nn.ReLU());
  for (const it of [new Net(), new Wide(1, 1), new Run(gm), gm]) expect(Reflect.get(it, "max_len")).toBeUndefined();
  expect(Reflect.get(new Net(), "in_dim")).toBeUndefined();
  expect(read(new Net(), "extra_repr")).toThrow("Net has no member `extra_repr`");
  expect(read(new nn.Linear(1, 1), "in_features")).toThrow("did you mean `inFeatures`?");
  expect(read(new nn.Conv2d(1, 1, 1), "kernel_size")).toThrow("Conv2d has no member `kernel_size`");
  const ofFunction = symbolicTrace((x: Tensor) => x.relu());
  expect(read(ofFunction, "add_module")).toThrow("GraphModule has no member `add_module`");
  const parameter = new nn.Parameter(torch.ones([1]));
  expect(read(parameter, "requires_grad")).toThrow("did you mean `requiresGrad`?");
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

test("they are refused of all classes that are there to be extended", () => {
  class Shown extends nn.Module {
    extra_repr(): string {
      return "";
    }
  }
  expect(() => new Shown()).toThrow("Shown overrides `extra_repr`, which Module does not call");
  class Written extends CodeGen {
    gen_fn_def(): string[] {
      return [];
    }
  }
  expect(() => new Graph().setCodegen(new Written())).toThrow("did you mean `genFnDef`?");
  class Supports extends OperatorSupport {
    is_node_supported(): boolean {
      return false;
    }
  }
  expect(() => new Supports()).toThrow("did you mean `isNodeSupported`?");
});

test("fields are methods where they are functions", () => {
  class Leafless extends Tracer {
    is_leaf_module = (): boolean => false;
  }
  class Shapes extends Interpreter {
    run_node = (): number => 1;
  }
  class Shown extends nn.Module {
    extra_repr = (): string => "";
  }
  const gm = symbolicTrace(new nn.ReLU());
  expect(() => new Leafless().trace(new nn.ReLU())).toThrow("Leafless overrides `is_leaf_module`");
  expect(() => new Shapes(gm).run(torch.ones([1]))).toThrow("did you mean `runNode`?");
  expect(() => new Shown()).toThrow("did you mean `extraRepr`?");
});

test("what is no method overrides none", () => {
  class Fetching extends Interpreter {
    get fetch_attr(): number {
      return 1;
    }
  }
  expect(new Fetching(symbolicTrace(new nn.ReLU())).fetch_attr).toBe(1);
});
