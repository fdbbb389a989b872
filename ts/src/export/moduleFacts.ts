/**
 * What a compiled graph module takes as it was when it was compiled.
 *
 * @module
 */
import { isWrapped } from "../functions/wrap.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { placeOf } from "../fx/interpreter.ts";
import { findAttributeValue, hasAttributeValue } from "../graph/attribute.ts";
import type { Node } from "../graph/node.ts";
import { addContext, GraphError } from "../base/errors.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { type Attribute, unboundForwardOf, hasHooks, Module } from "../nn/module.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { Tensor, tensorStorage } from "../tensor/tensor.ts";
import { treeFlatten } from "../trace/pytree.ts";
import { isConstant, KnownValue } from "./constants.ts";
import { typeName } from "./moduleInputs.ts";

/** One module as it was. */
interface Known {
  readonly module: Module;
  readonly attributes: readonly (readonly [name: string, attribute: Attribute, storage: TensorStorage | undefined])[];
  /** Settings, such as `training` and `eps`. */
  readonly properties: readonly (readonly [name: string, value: KnownValue])[];
}

/** A graph as it was. */
interface KnownGraph {
  readonly module: GraphModule;
  readonly graph: GraphModule["graph"];
  readonly version: number;
  readonly codegen: GraphModule["graph"]["codegen"];
}

/**
 * What modules are besides the elements of their tensors: graphs, settings, and which tensors they hold.
 *
 * @example
 * ```ts
 * const facts = new ModuleFacts(gm);
 * gm.eval();
 * facts.hold(); // false
 * ```
 */
export class ModuleFacts {
  readonly #modules: readonly Known[];
  readonly #graphs: readonly KnownGraph[];
  readonly #called: readonly Module[];

  constructor(root: GraphModule) {
    this.#called = [...calledModules(root)];
    const modules = [...root.namedModules().values()];
    this.#modules = modules.map((module) => ({
      module,
      attributes: Array.from(module.attributes, ([name, it]) => [
        name,
        it,
        it.kind === "module" ? undefined : tensorStorage(it.tensor),
      ]),
      properties: settingsOf(module),
    }));
    this.#graphs = modules
      .filter((it) => it instanceof GraphModule)
      .map((module) => {
        const { graph } = module;
        return { module, graph, version: graph.version, codegen: graph.codegen };
      });
  }

  /** Whether all is as it was. A tensor that was disposed of is told as an error. */
  hold(): boolean {
    return (
      this.#graphs.every(({ module, graph, version, codegen }) => {
        return module.graph === graph && graph.version === version && graph.codegen === codegen;
      }) &&
      this.#modules.every(({ module, attributes, properties }) => {
        return (
          module.attributes.size === attributes.length &&
          attributes.every(([name, attribute, storage]) => {
            if (module.attributes.get(name) !== attribute) return false;
            return attribute.kind === "module" || tensorStorage(attribute.tensor) === storage;
          }) &&
          properties.every(([name, value]) => value.isStill(Reflect.get(module, name)))
        );
      }) &&
      !this.#called.some((it) => hasHooks(it) || ownCodeOf(it) !== undefined)
    );
  }
}

/** What every graph module has for itself, and what no run looks at. */
const NO_SETTINGS: ReadonlySet<string> = new Set(["attributes", "meta", "graphHooks"]);

/** The plain properties that a module has itself. */
function settingsOf(module: Module): [name: string, value: KnownValue][] {
  return Object.keys(module)
    .filter((name) => !NO_SETTINGS.has(name) && !module.attributes.has(name))
    .map((name) => [name, new KnownValue(Reflect.get(module, name))]);
}

/** The modules whose `forward` a run goes through: the root, and those that graphs call with what is below them. */
function calledModules(root: GraphModule): Set<Module> {
  const res = new Set<Module>([root]);
  for (const [, module] of root.graphModules()) {
    for (const { op, target } of module.graph.nodes) {
      if (op !== "call_module" || !hasAttributeValue(module, target)) continue;
      for (const it of module.getSubmodule(target).namedModules().values()) res.add(it);
    }
  }
  return res;
}

/** Refuses a module whose graph calls JavaScript of the user's, which a program has no way to call; all of it at once. */
export function refuseHostCode(root: GraphModule): void {
  const [first, ...others] = root
    .graphModules()
    .flatMap(([, module]) => Array.from(module.graph.nodes, (node) => ({ node, why: hostCodeOf(node, module) })))
    .filter((it): it is { node: Node; why: string } => it.why !== undefined);
  if (first === undefined) {
    const why = ownCodeOf(root) ?? (hasHooks(root) ? "has hooks" : undefined);
    if (why === undefined) return;
    throw new GraphError("GraphArgument", `the module ${why}, and ${REASON}`, { help: HELP });
  }
  const error = new GraphError("GraphArgument", `the node ${first.why}, and ${REASON}`, {
    notes: others.map(({ node, why }) => `%${node.name} ${why}`),
    help: HELP,
  });
  addContext(error, first.node.name, placeOf(first.node));
  throw error;
}

const REASON = "a compiled module calls no JavaScript";

const HELP =
  "gm.forward(...) runs any graph; torch.library.customOp makes an operator of a function, and a module of your own is traced into unless isLeafModule says otherwise";

function hostCodeOf({ op, target }: Node, module: GraphModule): string | undefined {
  if (op === "call_function") return isWrapped(target) ? `calls the function ${target}` : undefined;
  if ((op !== "call_module" && op !== "get_attr") || !hasAttributeValue(module, target)) return undefined;
  if (op === "get_attr") return objectIn(findAttributeValue(module, target), target);
  const modules = [...module.getSubmodule(target).namedModules().values()];
  const own = modules.find((it) => builtinNameOf(it.constructor) === undefined && !(it instanceof GraphModule));
  if (own !== undefined) return `calls ${target}, a module of the class ${own.className}`;
  const code = modules.map(ownCodeOf).find((it) => it !== undefined);
  if (code !== undefined) return `calls the module ${target}, which ${code}`;
  return modules.some(hasHooks) ? `calls the module ${target}, which has hooks` : undefined;
}

/** What a graph module, or one of `torch.nn`, does otherwise than its class: by a class that extends it, or by a function of its own. */
function ownCodeOf(module: Module): string | undefined {
  if (Object.hasOwn(module, "call") || module.call !== Module.prototype.call) return "has a `call` of its own";
  const isOwn =
    module instanceof GraphModule ? unboundForwardOf(module) !== GRAPH_FORWARD : Object.hasOwn(module, "forward");
  return isOwn ? "has a `forward` of its own" : undefined;
}

// oxlint-disable-next-line typescript/unbound-method -- it is compared, and never called
const GRAPH_FORWARD: unknown = GraphModule.prototype.forward;

/** What a graph reads that is neither a tensor nor constant: JavaScript alone knows what is in it. */
function objectIn(value: unknown, target: string): string | undefined {
  if (value instanceof Module) return undefined;
  const other = treeFlatten(value)[0].find((it) => !(it instanceof Tensor) && !isConstant(it));
  return other === undefined ? undefined : `reads ${target}, which holds a value of the type ${typeName(other)}`;
}
