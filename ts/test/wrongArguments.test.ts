/** Every export, and every method of its classes, called with what it does not take: whatever is thrown is a refusal of ours, or says what it found. */
import { beforeAll, expect, test, vi } from "vitest";
import * as tracefx from "tracefx";
import { exportProgram, FxError, Graph, GraphModule, init, nn, symbolicTrace, tensor, torch } from "tracefx";

beforeAll(() => init());

/** What is given in the place of an argument. */
const WRONG: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  "5": () => 5,
  text: () => "x",
  "{}": () => ({}),
  "[]": () => [],
  function: () => () => undefined,
  Module: () => new nn.Linear(2, 2),
  GraphModule: () => new GraphModule({}, new Graph()),
  Graph: () => new Graph(),
  Tensor: () => tensor([1, 2]),
};

/** What throws errors of JavaScript on purpose, or is no function to be called so. */
const OTHERS: Readonly<Record<string, string>> = {
  FxError: "an error itself, which takes what it is given",
};

const traced = (): GraphModule => symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()));
const program = (): tracefx.ExportedProgram => exportProgram(new nn.Linear(2, 2), [torch.ones(2, 2)]);
const parameter = (): nn.Parameter => new nn.Parameter(torch.ones(2));

class Loss extends nn.Module {
  weight = parameter();

  override forward(x: tracefx.Tensor): tracefx.Tensor {
    return torch.mul(x, this.weight).sum();
  }
}

/** What has methods. A method that several inherit is called on the first of them. */
const INSTANCES: readonly (() => object)[] = [
  () => traced().graph,
  () => [...traced().graph.nodes][1] as object,
  () => new nn.Linear(2, 2),
  traced,
  () => torch.ones(2, 2),
  parameter,
  () => new tracefx.Tracer(),
  () => new tracefx.Interpreter(traced()),
  () => new tracefx.Transformer(traced()),
  () => new tracefx.PassManager(),
  program,
  () => program().graphSignature,
  () => program().module(),
  () => new nn.Sequential(new nn.ReLU()),
  () => new nn.ModuleList([new nn.ReLU()]),
  () => new nn.ModuleDict({ a: new nn.ReLU() }),
  () => new nn.ParameterList([parameter()]),
  () => new nn.ParameterDict({ a: parameter() }),
  () => new tracefx.optim.SGD([parameter()], { lr: 0.1 }),
  () => new tracefx.optim.Adam([parameter()]),
  () => new tracefx.optim.AdamW([parameter()]),
  () => tracefx.Dim("n"),
  () => tracefx.Dim.AUTO,
  () => new tracefx.ShapesCollection(),
  () => new tracefx.AdditionalInputs(),
  () => tracefx.unflatten(program()),
  () => new tracefx.TrainingModule(exportProgram(new Loss(), [torch.ones(2)]).exportForwardBackward()),
  () => new tracefx.CodeGen(),
  () => new tracefx.BoxedCodeGen(),
  () => new Graph().hooks,
  () => new tracefx.Dict([["a", 1]]),
  () => new tracefx.ProfilingInterpreter(traced()),
  () => new tracefx.ShapeProp(traced()),
  () => new tracefx.Partitioner(),
  () => new tracefx.CSEPass(),
  () => new tracefx.NormalizeArgs(),
  () => new tracefx.AnnotateTypesWithSchema(),
  () => new tracefx.FakeTensorProp(traced()),
  () => new tracefx.OperatorSupport({}),
  () => new tracefx.SubgraphMatcher(traced().graph),
  () => new tracefx.RuleSet([]),
  () => new tracefx.TensorType([1, 2]),
  () => new tracefx.GraphTypeChecker(traced()),
  () => new tracefx.TranslationValidator(),
  () => new tracefx.ShapeSession([]),
  () => new tracefx.ShapesSpec({ x: new tracefx.TensorSpec([2]) }),
  () => new tracefx.ParamsSpec(),
  () => new tracefx.TensorSpec([2]),
  () => new tracefx.ObjectSpec(),
  () => new tracefx.DictSpec(),
  () => new tracefx.SeqSpec([]),
  () => new tracefx.IntVar("n"),
  () => new tracefx.ShapeSession([]).events[0] as tracefx.ShapeEnvEvent,
  () => new tracefx.CallMethodKey("size"),
  () => new tracefx.ConvertIntKey(),
  () => new tracefx.DivideByKey(2),
  () => new tracefx.MetaTracer(),
  () => new tracefx.DraftExportReport([]),
  () => new tracefx.FailureReport("GUARD_ADDED", { fix: "" }),
  () => new tracefx.unification.Substitution(),
  () => new tracefx.unification.Dispatcher("f"),
];

const PROTECTED = "protected: its class calls it, and subclasses hand on what they were given";
const OVERRIDDEN = "to be overridden: generateCode calls it with what it makes";
const RECORDS = "the package calls it while it records branches and loops";
const INTERNAL = "marked as internal, or of a class that is not exported: the package calls it";

/** The methods that are not called, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "Tracer.createInputs": PROTECTED,
  "Tracer.noteOrigin": PROTECTED,
  "Tracer.adopt": PROTECTED,
  "Tracer.inOutermost": PROTECTED,
  "Tracer.warn": PROTECTED,
  "TracerBase.createArguments": PROTECTED,
  "TracerBase.createTensorArg": PROTECTED,
  "TracerBase.createModuleArg": PROTECTED,
  "ParameterList.describe": PROTECTED,
  "ParameterDict.describe": PROTECTED,
  "SGD.check": PROTECTED,
  "SGD.loadState": PROTECTED,
  "SGD.update": PROTECTED,
  "Adam.check": PROTECTED,
  "Adam.decayed": PROTECTED,
  "Adam.saveState": PROTECTED,
  "Adam.loadState": PROTECTED,
  "Adam.tensorsOf": PROTECTED,
  "AdamW.decayed": PROTECTED,
  "Adam.update": PROTECTED,
  "CodeGen.genFnDef": OVERRIDDEN,
  "CodeGen.generateOutput": OVERRIDDEN,
  "BoxedCodeGen.genFnDef": OVERRIDDEN,
  "Tracer.traceSubgraph": RECORDS,
  "Tracer.reaches": RECORDS,
  "Tracer.orderFreeValues": RECORDS,
  "NodeState.forEachUser": INTERNAL,
  "ExportedProgram.through": INTERNAL,
  "ExportedProgram.withEngine": INTERNAL,
};

const failures: string[] = [];
const pending: Promise<unknown>[] = [];

function attempt(name: string, fn: () => unknown): void {
  try {
    const result = fn();
    if (result instanceof Promise) pending.push(result.catch((error: unknown) => note(name, error)));
  } catch (error) {
    note(name, error);
  }
}

function note(name: string, error: unknown): void {
  if (error instanceof FxError && error.kind !== "Internal") return;
  failures.push(`${name}: ${String(error).split("\n")[0]}`);
}

test("wrong arguments are refused by name, and nothing breaks on them", { timeout: 120_000 }, async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  const { nn: layers, optim, F, math, operator, builtins, unification } = tracefx;
  const spaces = {
    nn: layers,
    "nn.init": layers.init,
    "nn.rnn": layers.rnn,
    optim,
    F,
    math,
    operator,
    builtins,
    torch,
  };
  const inner = Object.entries({ ...spaces, unification, "torch.library": torch.library }).flatMap(([space, members]) =>
    Object.entries(members).map(([name, value]) => [`${space}.${name}`, value as unknown] as const),
  );
  for (const [name, value] of [...Object.entries(tracefx), ...inner]) {
    if (typeof value !== "function" || name in OTHERS || name.endsWith("Error") || name === "restart") continue;
    const isClass = /^class\b/.test(Function.prototype.toString.call(value));
    for (const [given, make] of Object.entries(WRONG)) {
      for (const count of [1, 3]) {
        const args = Array.from({ length: count }, make);
        attempt(`${name}(${given} × ${count})`, () =>
          isClass ? Reflect.construct(value, args) : (value as (...all: unknown[]) => unknown)(...args),
        );
      }
    }
  }
  await settle();
});

test("so are those of methods", { timeout: 180_000 }, async () => {
  for (const level of ["log", "warn"] as const) vi.spyOn(console, level).mockImplementation(() => {});
  const seen = new Set<object>();
  const left = new Set(Object.keys(LEFT_OUT));
  for (const make of INSTANCES) {
    for (const prototype of prototypesOf(make())) {
      if (seen.has(prototype)) continue;
      seen.add(prototype);
      for (const [method, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        const name = `${prototype.constructor.name}.${method}`;
        if (typeof value !== "function" || method === "constructor" || left.delete(name)) continue;
        callWrongly(name, make, value as (...args: unknown[]) => unknown);
      }
    }
  }
  await settle();
  expect([...left]).toEqual([]);
});

/** What was taken in silence, and broke what came later. */
const TAKEN: Readonly<Record<string, (five: never) => unknown>> = {
  "addModule takes a Module": (five) => new nn.Module().addModule("a", five),
  "setSubmodule takes a Module": (five) => new nn.Sequential(new nn.ReLU()).setSubmodule("0", five),
  "addSubmodule takes a Module": (five) => traced().addSubmodule("a", five),
  "the buffer `a` is not a Tensor": (five) => new nn.Module().registerBuffer("a", five),
  "train takes true or false": (five) => new nn.Module().train(five),
  "setName takes a string as the name": (five) => Object.assign([...traced().graph.nodes][1] as object, { name: five }),
  "a node takes a string as its name": (five) => new Graph().createNode("call_function", "torch.add", [], {}, five),
  "setCodegen takes a CodeGen": (five) => new Graph().setCodegen(five),
  "onGenerateCode takes a function as what `make` gives": (five) => new Graph().onGenerateCode(() => five),
  "findNodes has no option `opcode`": (five) =>
    traced().graph.findNodes({ op: "output", opcode: five } as tracefx.NodeQuery),
  "eraseNode takes a Node": () => {
    const gm = traced();
    gm.graph.eraseNode(gm as never);
  },
  "runWith takes a Map from nodes to values as initialEnv": (five) =>
    new tracefx.Interpreter(traced()).runWith([], { initialEnv: five }),
  "replaceAllUsesWith takes a function as filter": (five) => {
    const [x, y] = traced().graph.nodes;
    return x?.replaceAllUsesWith(y as tracefx.Node, { filter: five });
  },
  "ModuleList.extend takes an iterable as modules": (five) => new nn.ModuleList().extend(five),
  "runDecompositions takes a Set of the names of operators as table": (five) =>
    program().runDecompositions([five] as never),
  "loadStateDict takes a tensor for `weight`": (five) => program().loadStateDict(new Map([["weight", five]])),
  "registerForwardHook takes a function as the hook": (five) => new nn.Module().registerForwardHook(five),
  "registerForwardPreHook takes a function as the hook": (five) => new nn.Module().registerForwardPreHook(five),
  "onCreate takes a function as the hook": (five) => new Graph().hooks.onCreate(five),
  "onErase takes a function as the hook": (five) => new Graph().hooks.onErase(five),
  "onReplace takes a function as the hook": (five) => new Graph().hooks.onReplace(five),
  "proxy takes a Node": (five) => new tracefx.Tracer().proxy(five),
  "addSubgraph takes a Graph": (five) => new tracefx.Tracer().addSubgraph("body", five),
  "Dict takes a string as a key": (five) => new tracefx.Dict([[five, 1]]),
  "replaceAllUses takes a string as the new name": (five) => program().graphSignature.replaceAllUses("x", five),
  "ShapesCollection.set takes a tensor": (five) => new tracefx.ShapesCollection().set(five, [null]),
  "AdditionalInputs.add takes a list as args": (five) => new tracefx.AdditionalInputs().add(five),
  "RuleSet takes rules in its list": (five) => new tracefx.RuleSet([five]),
  "addTargetExpr takes a string as the expression": (five) => new tracefx.TranslationValidator().addTargetExpr(five),
  "addAssertion takes a string as the expression": (five) => new tracefx.TranslationValidator().addAssertion(five),
  "Dispatcher.add takes a function as run": (five) => new tracefx.unification.Dispatcher("f").add([Object], five),
};

test.each(Object.entries(TAKEN))("%s", (message, call) => {
  expect(() => call(5 as never)).toThrow(message);
  expect(() => call(5 as never)).toThrow(FxError);
});

test("a signature equals no other thing, as Python's == says", () => {
  expect(program().graphSignature.equals(5 as never)).toBe(false);
  expect(traced().graph.contains(5 as never)).toBe(false);
});

/** Calls a method with each of what it does not take. An instance serves until a call goes through, which may change it. */
function callWrongly(name: string, make: () => object, method: (...args: unknown[]) => unknown): void {
  let self = make();
  for (const [given, arg] of Object.entries(WRONG)) {
    for (const count of [1, 3]) {
      attempt(`${name}(${given} × ${count})`, () => {
        const result = method.apply(self, Array.from({ length: count }, arg));
        self = make();
        return result;
      });
    }
  }
}

function prototypesOf(instance: object): object[] {
  const res: object[] = [];
  for (let it: unknown = Object.getPrototypeOf(instance); it !== null; it = Object.getPrototypeOf(it))
    res.push(it as object);
  return res.filter((it) => !/\[native code\]/.test(Function.prototype.toString.call(it.constructor)));
}

/** Waits for what was promised, and looks at all that was noted. */
async function settle(): Promise<void> {
  await Promise.all(pending.splice(0));
  vi.restoreAllMocks();
  expect(failures.splice(0)).toEqual([]);
}
