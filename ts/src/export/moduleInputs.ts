/**
 * The inputs of an exported graph: what the module holds, and what the user gives, with their names and structure.
 *
 * @module
 */
import { type CallArguments, isOptions, splitArguments } from "../base/naming.ts";
import { isObject } from "../base/objects.ts";
import { fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr, type Val } from "../graph/val.ts";
import { Complex, DeviceArg, DTypeArg, Float, LayoutArg, MemoryFormatArg, ValueTuple } from "../base/values.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { forwardSignatureOf } from "../nn/builtin.ts";
import { hasHooks, type Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Inputs } from "../trace/inputs.ts";
import { parametersOf } from "../trace/parameters.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { argumentOf } from "./arguments.ts";
import { type DynamicShapes, resolveDynamicShapes } from "./dynamicShapes.ts";
import type { ExportInputs, ExportTracer } from "./exportTracer.ts";
import type { LiftedConstant } from "./liftedConstants.ts";
import { leafNames, liftedName, renameNodes } from "./placeholderNames.ts";
import type { CallSignature, ModuleCallEntry } from "./program.ts";
import type { ShapeSession } from "./shapes.ts";
import type { InputSpec } from "./signature.ts";
import { TracedNumber } from "./traced.ts";
import { callSpec, treeSpec } from "./treeSpecs.ts";

/** The inputs of the graph of a module: what it holds, and what the user gives. */
export class ModuleInputs {
  /** The leaves of the user's inputs. */
  readonly leaves: ReturnType<typeof resolveDynamicShapes>;
  readonly #module: Module;
  readonly #args: readonly unknown[];
  readonly #kwargs: Readonly<Record<string, unknown>>;
  readonly #names: readonly string[];
  readonly #leafNames: readonly string[];
  readonly #parameters: ReadonlyMap<string, Tensor>;
  readonly #buffers: ReadonlyMap<string, Tensor>;
  readonly #lifted: (readonly [kind: "PARAMETER" | "BUFFER", fqn: string])[] = [];
  #outSpec: PytreeSpec | undefined;

  constructor(
    module: Module,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    dynamicShapes: DynamicShapes,
  ) {
    this.#module = module;
    this.#args = args;
    this.#kwargs = kwargs;
    const bound = [...boundArguments(module, args), ...Object.entries(kwargs)];
    this.#names = bound.map(([name]) => name);
    this.#leafNames = bound.flatMap(([name, value]) => leafNames(name, treeFlatten(value)[1]));
    this.leaves = resolveDynamicShapes(
      this.#names,
      bound.map(([, value]) => value),
      dynamicShapes,
    );
    for (const [at, { value }] of this.leaves.entries()) checkLeaf(value, this.#leafNames[at] ?? "");
    this.#parameters = module.namedParameters({ removeDuplicate: false });
    this.#buffers = module.namedBuffers({ removeDuplicate: false });
  }

  /** How what the module gave is nested. */
  get outSpec(): PytreeSpec {
    return this.#outSpec ?? treeFlatten(null)[1];
  }

  placeholdersFor(shapes: ShapeSession): ExportInputs {
    return { create: (tracer) => this.#create(tracer, shapes) };
  }

  #create(tracer: ExportTracer, shapes: ShapeSession): Inputs {
    const lift = (kind: "PARAMETER" | "BUFFER", fqn: string, tensor: Tensor): void => {
      const node = tracer.placeholder(`arg${this.#lifted.length}_1`, tensorVal(tensor));
      tracer.trackTensor(tensor, node);
      tracer.noteSource(node, `self_${fqn}`);
      this.#lifted.push([kind, fqn]);
    };
    for (const [fqn, tensor] of this.#parameters) lift("PARAMETER", fqn, tensor);
    for (const [fqn, tensor] of this.#buffers) lift("BUFFER", fqn, tensor);
    const values = this.leaves.map(({ value }, at) => {
      const known = shapes.values[at] as Val;
      const node = tracer.placeholder(`arg${this.#lifted.length + at}_1`, known);
      tracer.firstUserInput ??= node;
      tracer.noteSource(node, this.#leafNames[at] ?? "");
      if (value instanceof Tensor) return tracer.trackTensor(value, node);
      return known instanceof SymExpr ? tracer.numberOf(known, node) : value;
    });
    const [, spec] = treeFlatten([this.#args, this.#kwargs]);
    const [args, kwargs] = treeUnflatten(values, spec) as [unknown[], Record<string, unknown>];
    const given = Object.keys(kwargs).length === 0 ? args : [...args, kwargs];
    return {
      run: (fn) => {
        const isPlain = !hasHooks(this.#module) && given === args;
        const result = isPlain ? fn(...given) : this.#module.call(...given);
        const [leaves, outSpec] = treeFlatten(result);
        this.#outSpec = outSpec;
        for (const [at, leaf] of leaves.entries()) checkLeaf(leaf, `output ${at}`);
        return ValueTuple.frozen(leaves);
      },
      finish: () => {},
    };
  }

  /** Gives the nodes their names, and says what the inputs are. */
  finish(graph: Graph, constants: readonly LiftedConstant[]): InputSpec[] {
    // Passes may have made other nodes of them since they were recorded.
    const nodes = graph.findNodes({ op: "placeholder" });
    const held = nodes.splice(0, this.#lifted.length);
    const made = nodes.splice(0, constants.length);
    const lifted = this.#lifted.map(
      ([kind, fqn], at) => [held[at] as Node, liftedName(kind === "PARAMETER" ? "p" : "b", fqn)] as const,
    );
    const named = constants.map(({ fqn }, at) => [made[at] as Node, liftedName("c", fqn)] as const);
    renameNodes(
      graph,
      nodes.map((node, at) => [node, this.#leafNames[at] ?? node.name] as const),
      [...lifted, ...named],
    );
    const persistent = new Set(this.#module.stateDict().keys());
    return [
      ...this.#lifted.map(
        ([kind, target], at): InputSpec => ({
          kind,
          arg: { type: "tensor", name: (held[at] as Node).name },
          target,
          persistent: kind === "BUFFER" ? persistent.has(target) : undefined,
        }),
      ),
      ...constants.map(
        ({ fqn }, at): InputSpec => ({
          kind: "CONSTANT_TENSOR",
          arg: { type: "tensor", name: (made[at] as Node).name },
          target: fqn,
          persistent: undefined,
        }),
      ),
      ...nodes.map(
        (node): InputSpec => ({
          kind: "USER_INPUT",
          arg: argumentOf(node.name, node.meta.get("val") as Val),
          target: undefined,
          persistent: undefined,
        }),
      ),
    ];
  }

  /** The modules, and the calls besides the first whose signature is preserved. */
  callGraph(preserved: ReadonlyMap<string, CallSignature>): ModuleCallEntry[] {
    const [, args] = treeFlatten(this.#args);
    const [, kwargs] = treeFlatten(this.#kwargs);
    const root: ModuleCallEntry = {
      fqn: "",
      signature: {
        inputs: [],
        outputs: [],
        inSpec: callSpec(args, kwargs),
        outSpec: treeSpec(this.outSpec),
        forwardArgNames: this.#argumentNames(),
      },
    };
    const paths = [...this.#module.namedModules({ removeDuplicate: false }).keys()].filter((it) => it !== "");
    const again = [...preserved.keys()].filter((it) => !paths.includes(it));
    return [root, ...[...paths, ...again].map((fqn) => ({ fqn, signature: preserved.get(fqn) }))];
  }

  /** One name for each argument: those of a rest parameter are numbered. */
  #argumentNames(): string[] {
    const nKeywords = Object.keys(this.#kwargs).length;
    const nPositional = this.#names.length - nKeywords;
    const { list } = parametersOf(this.#module, "forward");
    if (list[nPositional - 1]?.kind !== "rest") return [...this.#names];
    const rest = this.#names[nPositional - 1] ?? "args";
    const numbered = this.#args.slice(nPositional - 1).map((_, at) => `${rest}_${at}`);
    return this.#names.toSpliced(nPositional - 1, 1, ...numbered);
  }
}

/** The arguments by the names of the parameters that take them; a rest parameter takes several. */
function boundArguments(module: Module, args: readonly unknown[]): [name: string, value: unknown][] {
  const { list } = parametersOf(module, "forward");
  const res: [string, unknown][] = [];
  for (const [at, value] of args.entries()) {
    const parameter = list[at];
    if (parameter === undefined) {
      throw fxError(
        "InputCount",
        `forward of ${module.className} takes ${list.length} arguments, and there are ${args.length}`,
      );
    }
    if (parameter.kind === "rest") {
      res.push([parameter.name, args.slice(at)]);
      break;
    }
    res.push([parameter.name, value]);
  }
  return res;
}

/**
 * The positional and keyword arguments of a call of a module: an object behind the others has keyword arguments where `forward` takes it
 * apart or names its parameters as Python does, and is a dict otherwise.
 */
export function callArguments(module: Module, given: readonly unknown[]): CallArguments {
  if (!isOptions(given.at(-1))) return splitArguments(given, true);
  const hasKeywords =
    forwardSignatureOf(module) !== undefined ||
    parametersOf(module, "forward").list[given.length - 1]?.kind === "options";
  return hasKeywords ? splitArguments(given, true) : { args: given, kwargs: {} };
}

/** Refuses what no program takes or gives. */
function checkLeaf(value: unknown, place: string): void {
  if (value === null || ["number", "bigint", "boolean", "string"].includes(typeof value)) return;
  if (value instanceof TracedNumber || value instanceof Tensor || value instanceof Float) return;
  for (const kind of [Complex, DTypeArg, DeviceArg, LayoutArg, MemoryFormatArg]) if (value instanceof kind) return;
  throw fxError("InputType", `Unsupported input type ${typeName(value)} at ${place}`, {
    help: "Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. To register a custom class, use registerPytreeNode",
  });
}

/** What a value is, in messages. */
export function typeName(value: unknown): string {
  return value === null ? "null" : isObject(value) ? (value.constructor?.name ?? "an object") : typeof value;
}
