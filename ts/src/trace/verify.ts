/**
 * Whether a trace does what was traced, on inputs that one can think of.
 *
 * Both are run on copies of the inputs, from the same state of the module and of the random numbers; afterwards everything
 * is as it was before. So statistics do not run twice, and dropout drops the same.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { isNode, type Arg } from "../graph/args.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { Interpreter } from "../fx/interpreter.ts";
import { isBuiltinModule } from "../nn/builtin.ts";
import { Module } from "../nn/module.ts";
import { observeModules } from "../nn/observe.ts";
import { Tensor } from "../tensor/tensor.ts";
import { getRngState, setRngState } from "../torch/random.ts";
import { differenceOf } from "./difference.ts";
import { treeFlatten, treeMap } from "./pytree.ts";
import type { Traceable } from "./tracer.ts";

/** The inputs of one call, or of several: an array of arrays. */
export type VerifyInputs = readonly unknown[];

/** Throws `TraceMismatch` where a graph gives something else than what it was traced from. */
export function verifyTrace(root: Traceable, gm: GraphModule, inputs: VerifyInputs): void {
  const sets = inputs.every((it) => Array.isArray(it)) ? (inputs as readonly unknown[][]) : [inputs];
  sets.forEach((set, at) => {
    const what = sets.length === 1 ? "the inputs" : `set ${at} of inputs`;
    verifyOne(new Run(root, gm, set), what);
  });
}

/** A call of a module that both runs make. */
interface Step {
  readonly path: string;
  readonly value: unknown;
  readonly node?: Node;
}

interface Outcome {
  readonly value: unknown;
  /** The tensors of the module afterwards. */
  readonly state: ReadonlyMap<string, Tensor>;
}

function verifyOne(run: Run, what: string): void {
  const [eager, traced] = [run.eager(), run.traced()];
  const difference = differenceOf(eager.value, traced.value) ?? stateDifference(eager.state, traced.state);
  if (difference === undefined) return;
  const steps = firstDifferentStep(run);
  const node = steps?.node ?? outputNodeOf(run.gm, difference.leaf);
  throw mismatch(`on ${what}, ${difference.text}`, node, steps?.text);
}

function stateDifference(eager: Outcome["state"], traced: Outcome["state"]) {
  for (const [path, tensor] of eager) {
    const difference = differenceOf(tensor, traced.get(path));
    if (difference !== undefined) return { leaf: undefined, text: `\`${path}\` afterwards: ${difference.text}` };
  }
  return undefined;
}

/** Runs what was traced and the graph, each from the same state. */
class Run {
  readonly root: Traceable;
  readonly gm: GraphModule;
  readonly #inputs: readonly unknown[];

  constructor(root: Traceable, gm: GraphModule, inputs: readonly unknown[]) {
    this.root = root;
    this.gm = gm;
    this.#inputs = inputs;
  }

  eager(): Outcome {
    return this.#outcome((...args) => call(this.root, args));
  }

  traced(): Outcome {
    return this.#outcome((...args) => this.gm.forward(...args));
  }

  /** The calls of modules of `torch.nn` that the eager run makes. */
  eagerSteps(): Step[] {
    const steps: Step[] = [];
    if (!(this.root instanceof Module)) return steps;
    const paths = new Map(Array.from(this.root.namedModules(), ([path, module]) => [module, path]));
    const observer = {
      callModule: ({
        module,
        run,
        args,
      }: {
        module: Module;
        run: (...args: unknown[]) => unknown;
        args: readonly unknown[];
      }) => {
        const value = run(...args);
        const path = paths.get(module);
        if (path !== undefined && isBuiltinModule(module)) steps.push({ path, value: copied(value) });
        return value;
      },
      getattr: (_: Module, _name: string, { tensor }: { readonly tensor: Tensor }) => tensor,
    };
    this.#outcome((...args) => observeModules(observer, () => call(this.root, args)));
    return steps;
  }

  /** The calls of modules that the graph makes. */
  tracedSteps(): Step[] {
    const steps: Step[] = [];
    class Recorder extends Interpreter {
      override runNode(node: Node): unknown {
        const value = super.runNode(node);
        if (node.op === "call_module") steps.push({ path: node.target, value: copied(value), node });
        return value;
      }
    }
    this.#outcome((...args) => new Recorder(this.gm).run(...args));
    return steps;
  }

  #outcome(run: (...args: unknown[]) => unknown): Outcome {
    const tensors = this.root instanceof Module ? tensorsOf(this.root) : tensorsOf(this.gm);
    const before = Array.from(tensors, ([, tensor]) => [tensor, copied(tensor) as Tensor] as const);
    const random = getRngState();
    try {
      const value = copied(run(...(copied(this.#inputs) as unknown[])));
      return { value, state: new Map(Array.from(tensors, ([path, it]) => [path, copied(it) as Tensor])) };
    } finally {
      for (const [tensor, saved] of before) callOperator("aten.copy_", [tensor, saved]);
      setRngState(random);
    }
  }
}

function call(root: Traceable, args: readonly unknown[]): unknown {
  return root instanceof Module ? root.call(...args) : (root as (...args: unknown[]) => unknown)(...args);
}

function tensorsOf(root: Module): Map<string, Tensor> {
  return new Map([...root.namedParameters(), ...root.namedBuffers()]);
}

/** The same containers with copies of the tensors, which may be changed in place. */
function copied(tree: unknown): unknown {
  return treeMap((it) => (it instanceof Tensor ? callOperator("aten.clone", [it]) : it), tree);
}

/** The first call of a module that is not the same in both runs. */
function firstDifferentStep(run: Run): { readonly node: Node | undefined; readonly text: string } | undefined {
  const [eager, traced] = [run.eagerSteps(), run.tracedSteps()];
  for (let at = 0; at < Math.max(eager.length, traced.length); at++) {
    const [wanted, found] = [eager[at], traced[at]];
    if (wanted?.path !== found?.path) {
      const text = `the graph calls ${nameOf(found)} where the module calls ${nameOf(wanted)}`;
      return { node: found?.node, text };
    }
    const difference = differenceOf(wanted?.value, found?.value);
    if (difference !== undefined) return { node: found?.node, text: `${nameOf(found)} is the first module to differ` };
  }
  return undefined;
}

function nameOf(step: Step | undefined): string {
  return step === undefined ? "no module" : `\`${step.path}\``;
}

/** The node whose value is this leaf of the output. */
function outputNodeOf({ graph }: GraphModule, leaf: number | undefined): Node | undefined {
  const output = graph.outputNode();
  if (leaf === undefined || output === undefined) return output;
  const arg = treeFlatten(output.args[0])[0][leaf] as Arg | undefined;
  return isNode(arg) ? arg : output;
}

function mismatch(reason: string, node: Node | undefined, note: string | undefined): FxError {
  const at: unknown = node?.meta.get("stack_trace");
  const place = typeof at === "string" && at !== "" ? at.split("\n").slice(0, 1) : [];
  return fxError("TraceMismatch", `the trace does not do what was traced: ${reason}`, {
    node: node?.name,
    notes: [...(note === undefined ? [] : [note]), ...place],
    help: "look for what the trace cannot see: a test on a value (if, &&, ?:), a size read as a number, a field that changes",
  });
}
