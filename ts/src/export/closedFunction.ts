/**
 * Functions on tensors as graphs of which everything that they use is an input: what transforms of functions work on.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { defaultDecompositions, type ExportedProgram } from "./exportedProgram.ts";
import { withoutModes } from "../engine/modes.ts";
import { recordingOperators } from "../engine/recorder.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Arg } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { TensorMeta, type Val } from "../graph/val.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Inputs } from "../trace/inputs.ts";
import { type PytreeSpec, treeFlatten } from "../trace/pytree.ts";
import type { Traceable } from "../trace/tracer.ts";
import { isComposite } from "./dispatchFacts.ts";
import { replaceModes } from "./exportPasses.ts";
import { isDynamic } from "./knownParts.ts";
import { MakeFxTracer } from "./makeFxTracer.ts";
import { ShapeSession } from "./shapes.ts";
import { TracedTensor } from "./traced.ts";

/** What is known of a tensor, be it one of a trace. */
export function metaOf(tensor: Tensor): TensorMeta {
  return tensor instanceof TracedTensor ? tensor.meta : tensorVal(tensor);
}

/** What transforms say of symbolic sizes. */
export function unknownSizes(): FxError {
  return fxError(
    "NotImplemented",
    "transforms of functions, and decompositions that are functions, of sizes that are symbolic",
    {
      help: 'trace with sizes that are known: without dynamicShapes, or with tracingMode "real"',
    },
  );
}

/** A function as a graph. */
export interface ClosedFunction {
  readonly graph: Graph;
  readonly module: GraphModule;
  /** The inputs for the leaves of the arguments that are tensors. */
  readonly inputs: readonly Node[];
  /** Tensors of the function's surroundings, and the inputs that they are. */
  readonly free: ReadonlyMap<Node, Tensor>;
  /** What it gives: nodes, or values that are no tensors. */
  readonly results: readonly unknown[];
  readonly outSpec: PytreeSpec;
}

/** Records what it uses of its surroundings as inputs. */
class ClosureTracer extends MakeFxTracer {
  readonly free = new Map<Tensor, Node>();

  protected override createTensorArg(tensor: Tensor): Arg {
    if (tensor instanceof TracedTensor && this.reaches(tensor.node)) return super.createTensorArg(tensor);
    let node = this.free.get(tensor);
    if (node === undefined) {
      const val = new TensorMeta({ ...metaOf(tensor), requiresGrad: false });
      if (isDynamic(val)) throw unknownSizes();
      node = this.inOutermost(() => {
        const last = this.graph.findNodes({ op: "placeholder" }).at(-1);
        const make = (): Node => this.placeholder(`free_${this.free.size}`, val);
        return last === undefined
          ? this.graph.insertingBefore(this.graph.first, make)
          : this.graph.insertingAfter(last, make);
      });
      this.free.set(tensor, node);
    }
    return this.adopt(node);
  }
}

/** How a function is traced by {@link closed}. */
export interface Closing {
  /** Which leaves require a gradient; none by default. */
  readonly isWanted?: (at: number) => boolean;
  /** The arguments that leaves are of; the leaves themselves by default. */
  readonly argumentsOf?: (leaves: readonly unknown[]) => readonly unknown[];
}

/** Traces a function. Of tensors among the leaves of its arguments it is enough what is known of them. */
export function closed(
  f: (...args: unknown[]) => unknown,
  leaves: readonly unknown[],
  { isWanted = () => false, argumentsOf = (it) => it }: Closing = {},
): ClosedFunction {
  const vals = leaves.map((it, at) => {
    const meta = it instanceof Tensor ? metaOf(it) : it;
    return meta instanceof TensorMeta ? new TensorMeta({ ...meta, requiresGrad: isWanted(at) }) : (it as Val);
  });
  if (vals.some(isDynamic)) throw unknownSizes();
  const tensors = vals.flatMap((it, at) => (it instanceof TensorMeta ? [at] : []));
  using shapes = new ShapeSession(tensors.map((at) => ({ source: "L", value: vals[at] as Val })));
  const inputs: Node[] = [];
  let outSpec: PytreeSpec | undefined;
  const create = (tracer: MakeFxTracer): Inputs => {
    const values = leaves.map((it, at) => {
      if (!(vals[at] instanceof TensorMeta)) return it;
      const node = tracer.placeholder(`arg_${at}`, vals[at] as Val);
      inputs.push(node);
      return tracer.proxy(node);
    });
    return {
      run: (fn) => {
        const [results, spec] = treeFlatten(fn(...argumentsOf(values)));
        outSpec = spec;
        return results;
      },
      finish: () => {},
    };
  };
  const tracer = new ClosureTracer(shapes, create, { decompositions: new Map(), isPreDispatch: true, mode: "fake" });
  const graph = recordingOperators(undefined, () => withoutModes(() => tracer.trace(f as Traceable)));
  const module = tracer.moduleOf(graph, "GraphModule");
  replaceModes(module);
  const [results] = (module.graph.outputNode()?.args ?? []) as unknown as [readonly unknown[]];
  const free = new Map(Array.from(tracer.free, ([tensor, node]) => [node, tensor]));
  return { graph: module.graph, module, inputs, free, results, outSpec: outSpec as PytreeSpec };
}

/** The operators that nothing below autograd sees. */
export function compositeOperators(): Set<string> {
  return new Set([...defaultDecompositions()].filter((it) => isComposite(it.replace(/^torch\.ops\./, ""))));
}

/** The inputs of a program, in their order. */
export function inputsOf(program: ExportedProgram): Node[] {
  return program.graph.findNodes({ op: "placeholder" });
}
