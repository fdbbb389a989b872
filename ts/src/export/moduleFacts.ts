/**
 * What a compiled graph module takes as it was when it was compiled.
 *
 * @module
 */
import { isWrapped } from "../functions/wrap.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { placeOf } from "../fx/interpreter.ts";
import { hasAttributeValue } from "../graph/attribute.ts";
import type { Node } from "../graph/node.ts";
import { addContext, GraphError } from "../base/errors.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { type Attribute, hasHooks, type Module } from "../nn/module.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { tensorStorage } from "../tensor/tensor.ts";

/** One module as it was. */
interface Known {
  readonly module: Module;
  readonly attributes: readonly (readonly [name: string, attribute: Attribute, storage: TensorStorage | undefined])[];
  /** Settings, such as `training` and `eps`. */
  readonly properties: readonly (readonly [name: string, value: unknown])[];
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

  constructor(root: GraphModule) {
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
          !hasHooks(module) &&
          attributes.every(([name, attribute, storage]) => {
            if (module.attributes.get(name) !== attribute) return false;
            return attribute.kind === "module" || tensorStorage(attribute.tensor) === storage;
          }) &&
          properties.every(([name, value]) => Object.is(Reflect.get(module, name), value))
        );
      })
    );
  }
}

/** The plain properties that a module has itself. */
function settingsOf(module: Module): [name: string, value: unknown][] {
  return Object.keys(module)
    .filter((name) => name !== "attributes" && !module.attributes.has(name))
    .map((name) => [name, Reflect.get(module, name)]);
}

/** Refuses a module whose graph calls JavaScript of the user's, which a program has no way to call; all of it at once. */
export function refuseHostCode(root: GraphModule): void {
  const [first, ...others] = root
    .graphModules()
    .flatMap(([, module]) => Array.from(module.graph.nodes, (node) => ({ node, why: hostCodeOf(node, module) })))
    .filter((it): it is { node: Node; why: string } => it.why !== undefined);
  if (first === undefined) {
    if (!hasHooks(root)) return;
    throw new GraphError("GraphArgument", "the module has hooks, and a compiled module calls no JavaScript", {
      help: HELP,
    });
  }
  const error = new GraphError("GraphArgument", `the node ${first.why}, and a compiled module calls no JavaScript`, {
    notes: others.map(({ node, why }) => `%${node.name} ${why}`),
    help: HELP,
  });
  addContext(error, first.node.name, placeOf(first.node));
  throw error;
}

const HELP =
  "gm.forward(...) runs any graph; torch.library.customOp makes an operator of a function, and a module of your own is traced into unless isLeafModule says otherwise";

function hostCodeOf({ op, target }: Node, module: GraphModule): string | undefined {
  if (op === "call_function") return isWrapped(target) ? `calls the function ${target}` : undefined;
  if (op !== "call_module" || !hasAttributeValue(module, target)) return undefined;
  const modules = [...module.getSubmodule(target).namedModules().values()];
  const own = modules.find((it) => builtinNameOf(it.constructor) === undefined && !(it instanceof GraphModule));
  if (own !== undefined) return `calls ${target}, a module of the class ${own.className}`;
  return modules.some(hasHooks) ? `calls the module ${target}, which has hooks` : undefined;
}
