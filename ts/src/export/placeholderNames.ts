/**
 * The names of an exported graph: those of the user's arguments, of parameters, buffers and constants, and then those of the
 * calls, which give way.
 *
 * @module
 */
import { type Arg, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { copyNotes, type Node } from "../graph/node.ts";
import { containerNamed } from "../trace/containers.ts";
import type { PytreeSpec } from "../trace/pytree.ts";

/** What a name that was wanted becomes, as PyTorch counts: a number behind it where it is taken. */
class Names {
  readonly #used = new Set<string>();
  readonly #last = new Map<string, number>();

  take(wanted: string, isPlaceholder: boolean): string {
    const [, prefix] = isPlaceholder ? [] : (NUMBERED.exec(wanted) ?? []);
    const stem = prefix ?? wanted;
    const name = this.#used.has(wanted) ? `${stem}_${(this.#last.get(stem) ?? 0) + 1}` : wanted;
    const [, base, digits] = NUMBERED.exec(name) ?? [];
    if (base !== undefined) this.#last.set(base, Math.max(this.#last.get(base) ?? 0, Number(digits)));
    this.#used.add(name);
    return name;
  }
}

const NUMBERED = /^(.*)_(\d+)$/;

/** Renames all nodes of a graph, given what its inputs are to be called; the user's inputs come first to their names. */
export function renameNodes(
  graph: Graph,
  userInputs: readonly (readonly [node: Node, wanted: string])[],
  lifted: readonly (readonly [node: Node, wanted: string])[],
): void {
  const names = new Names();
  const chosen = new Map<Node, string>();
  for (const [node, wanted] of [...userInputs, ...lifted]) chosen.set(node, names.take(wanted, true));
  for (const node of graph.nodes) if (node.op !== "placeholder") chosen.set(node, names.take(node.name, false));
  graph.renameAll(chosen);
  for (const [node] of [...userInputs, ...lifted]) {
    const val = node.meta.get("val");
    node.target = node.name;
    // The new target says nothing else.
    node.meta.set("val", val);
  }
}

/**
 * Names the inputs of the graphs of control flow: those of branches and of `map` after their operands, which have their
 * names already, and those of loops by their positions.
 */
export function renameSubgraphInputs(module: GraphModule): void {
  for (const node of module.graph.nodes) {
    const inner = node.args.filter(isNode).flatMap(({ op, target }) => {
      const found = op === "get_attr" ? module.findAttribute(target) : undefined;
      return found?.kind === "module" && found.module instanceof GraphModule ? [found.module] : [];
    });
    const operands = operandsOf(node);
    // PyTorch leaves the inputs of these as they were recorded.
    const isNamed = node.target !== "torch.ops.higher_order.wrap_with_autocast";
    for (const { graph } of isNamed ? inner : []) {
      const inputs = graph.findNodes({ op: "placeholder" });
      renameNodes(
        graph,
        inputs.map((input, at) => {
          const operand = operands?.[at];
          return [input, isNode(operand) ? operand.name : `arg${at}_1`];
        }),
        [],
      );
    }
    for (const it of inner) renameSubgraphInputs(it);
  }
}

/** The operands of a call of graphs whose inputs have their names. */
function operandsOf({ target, args }: Node): readonly Arg[] | undefined {
  switch (target) {
    case "torch.ops.higher_order.cond":
      return [...(args[3] as readonly Arg[])];
    case "torch.ops.higher_order.wrap_with_set_grad_enabled":
      return args.slice(2);
    case "torch.ops.higher_order.map_impl":
      return [...(args[1] as readonly Arg[]), ...(args[2] as readonly Arg[])];
    default:
      return undefined;
  }
}

/** An input of this very name, where it is free: programs have names that FX would change. */
export function inputNamed(graph: Graph, name: string): Node {
  if (graph.names.isUsed(name)) return graph.placeholder(name);
  return graph.createNamedNode("placeholder", name, [], {}, name);
}

/** An input of another graph, with its name and its notes. */
export function copyInput(graph: Graph, input: Node): Node {
  const copy = inputNamed(graph, input.name);
  copyNotes(input, copy);
  return copy;
}

/** The name of a parameter, buffer or constant, behind what says which it is. */
export function liftedName(prefix: "p" | "b" | "c", fqn: string): string {
  const stripped = fqn.replace(/^(?:L__self___|self_)/, "");
  return `${prefix}_${stripped.replaceAll(/[^a-zA-Z0-9]/g, "_").toLowerCase()}`;
}

/** The names of the leaves of an argument: the way to each, behind the name of the argument. */
export function leafNames(name: string, spec: PytreeSpec): string[] {
  const prefix = name.toLowerCase();
  if (spec.isLeaf) return [prefix];
  return spec.children.flatMap((child, at) => leafNames(`${prefix}_${keyOf(spec, at)}`, child));
}

function keyOf({ type, context }: PytreeSpec, at: number): string {
  const isDict = (type === "dict" || type === "Map") && Array.isArray(context);
  const names = isDict ? (context as readonly unknown[]) : containerNamed(type)?.names?.(context);
  return names === undefined ? String(at) : String(names[at]).replaceAll(/[^a-zA-Z0-9]/g, "_");
}
