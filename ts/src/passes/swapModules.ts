/**
 * Programs with other modules in the place of some that were exported: `torch.export._swap`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { CallSignature, TreeSpec } from "../export/program.ts";
import type { Argument } from "../export/signature.ts";
import { countLeaves, keysOf } from "../export/tree.ts";
import { holdTreeSpec } from "../export/treeFunctions.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { type ArgInput, isNode, tuple } from "../graph/args.ts";
import { CodeGen } from "../graph/codegen/codegen.ts";
import type { Node } from "../graph/node.ts";
import { legalizeGraph, validatePartition } from "../graph/topological.ts";
import { entriesOf } from "../nn/container.ts";
import { Module } from "../nn/module.ts";
import { eraseNodes } from "./fuserUtils.ts";

/**
 * A program as a graph module that calls other modules in the place of some that were exported: `_swap_modules`. The program has to be
 * exported with their paths in `preserveModuleCallSignature`, so that it is known what they take and give. The module that comes back is called
 * with the arguments of the exported one, in one list, and checks no inputs. The program stays as it is.
 *
 * @example
 * ```ts
 * const program = exportProgram(model, [tokens], {}, { preserveModuleCallSignature: ["decoder"] });
 * const gm = swapModules(program, { decoder: new FasterDecoder() });
 * const logits = gm.call(tokens);
 * ```
 */
export function swapModules(
  program: ExportedProgram,
  modulesToSwap: ReadonlyMap<string, Module> | Readonly<Record<string, Module>>,
): GraphModule {
  checkGiven("swapModules", program instanceof ExportedProgram, "an ExportedProgram");
  const isContainer = typeof modulesToSwap === "object" && modulesToSwap !== null;
  checkGiven("swapModules", isContainer, "a Map or an object of modules by path");
  const modules = new Map(entriesOf(modulesToSwap));
  for (const module of modules.values()) checkGiven("swapModules", module instanceof Module, "modules by path");
  const signatures = new Map(program.moduleCallGraph.map(({ fqn, signature }) => [fqn, signature]));
  const root = signatures.get("");
  checkGiven("swapModules", root !== undefined, "a program that says what the structure of its inputs is");
  const gm = program.unlift();
  gm.graph.eliminateDeadCode();
  nestInputs(gm, root as CallSignature);
  swap(gm, modules, signatures);
  return gm;
}

/** Puts what flattens the inputs and nests the results into the graph. */
function nestInputs(gm: GraphModule, { inSpec, outSpec, forwardArgNames }: CallSignature): void {
  const { graph } = gm;
  graph.setCodegen(new CodeGen());
  const flat = graph.findNodes({ op: "placeholder" });
  const [args, kwargs] = inSpec.children as readonly [TreeSpec, TreeSpec];
  const names = forwardArgNames ?? [...args.children.map((_, at) => `arg_${at}`), ...namesOf(kwargs)];
  const first = flat[0] ?? (Array.from(graph.nodes)[0] as Node);
  graph.insertingBefore(first, () => {
    const inputs = names.map((it) => graph.placeholder(it));
    const flatten = graph.callFunction("torch.utils._pytree.tree_flatten", [tuple(...inputs)]);
    const leaves = graph.callFunction("operator.getitem", [flatten, 0]);
    for (const [at, node] of flat.entries()) {
      const val = node.meta.get("val");
      node.op = "call_function";
      node.target = "operator.getitem";
      node.args = [leaves, at];
      if (val !== undefined) node.meta.set("val", val);
    }
  });
  const output = graph.outputNode() as Node;
  graph.insertingBefore(output, () => {
    output.args = [callWithSpec(gm, "torch.utils._pytree.tree_unflatten", output.args[0] ?? null, outSpec)];
  });
}

/** Calls a function of pytrees with a structure that the module holds. */
function callWithSpec(gm: GraphModule, target: string, value: ArgInput, spec: TreeSpec): Node {
  return gm.graph.callFunction(target, [value, gm.graph.getAttr(holdTreeSpec(gm, spec))]);
}

/** A call of a module that another one takes the place of. */
interface Swapped {
  readonly node: Node;
  readonly flattened: Node;
  readonly unflattened: Node;
  readonly signature: CallSignature;
}

function swap(
  gm: GraphModule,
  modules: ReadonlyMap<string, Module>,
  signatures: ReadonlyMap<string, CallSignature | undefined>,
): void {
  const { graph } = gm;
  legalizeGraph(graph);
  const named = new Map(Array.from(graph.nodes, (it) => [it.name, it]));
  const calls = callsOf(gm, modules);
  const called = new Set([...calls.values()].map(({ path }) => path));
  for (const path of modules.keys()) {
    if (called.has(path)) continue;
    const around = [...modules.keys()].find((it) => path.startsWith(`${it}.`));
    if (around !== undefined) {
      throw fxError("InvalidArgument", `\`${path}\` is a part of \`${around}\`, which is swapped as a whole`, {
        help: "leave one of the two out",
      });
    }
    throw fxError("AttributeMissing", `no node of the program is of a module \`${path}\``, {
      help: "a path is that of a module that the exported one called, as in nn_module_stack",
    });
  }
  const swapped = Array.from(calls, ([call, { path, nodes }]): Swapped => {
    const signature = signatures.get(call);
    if (signature === undefined) {
      throw fxError("InvalidArgument", `the program does not say what \`${call}\` takes and gives`, {
        help: `export with preserveModuleCallSignature: ["${path}"]`,
      });
    }
    return swapCall(gm, { path, nodes, module: modules.get(path) as Module, signature }, named);
  });
  // Tensors of modules that were taken away are read no more.
  for (const read of graph.findNodes({ op: "get_attr" })) if (read.users.size === 0) graph.eraseNode(read);
  legalizeGraph(graph);
  for (const call of swapped) connect(call, swapped);
  graph.eliminateDeadCode();
  graph.lint();
}

/** The nodes of modules that are swapped, by the call that they are of: a module that is called again is `path@1`. */
function callsOf(gm: GraphModule, modules: ReadonlyMap<string, Module>): Map<string, { path: string; nodes: Node[] }> {
  const res = new Map<string, { path: string; nodes: Node[] }>();
  for (const node of gm.graph.nodes) {
    const stack = node.meta.get("nn_module_stack");
    if (!(stack instanceof Map)) continue;
    for (const [key, [noted]] of stack as ReadonlyMap<string, readonly [path: string, type: string]>) {
      const path = noted.replace(/@\d+$/, "");
      if (!modules.has(path)) continue;
      const call = `${path}${/@\d+$/.exec(key)?.[0] ?? ""}`;
      const known = res.get(call);
      if (known === undefined) res.set(call, { path, nodes: [node] });
      else known.nodes.push(node);
      break;
    }
  }
  return res;
}

/** Calls a module instead of what nodes do. The graph has to be sorted afterwards. */
function swapCall(
  gm: GraphModule,
  { path, nodes, module, signature }: { path: string; nodes: Node[]; module: Module; signature: CallSignature },
  named: Map<string, Node>,
): Swapped {
  if (!validatePartition(nodes)) {
    throw fxError("GraphArgument", "Invalid partition, found dependency cycles", {
      notes: [`what is between the nodes of \`${path}\` uses them, and is used by them`],
    });
  }
  const { graph } = gm;
  const { inSpec, outSpec, inputs, outputs } = signature;
  const [ownArgs, ownKwargs] = inSpec.children as readonly [TreeSpec, TreeSpec];
  const leaves = inputs.map((it) => valueOf(it, named));
  const unflattened = callWithSpec(gm, "torch.utils._pytree.tree_unflatten", leaves, inSpec);
  const item = (of: Node, at: number | string): Node => graph.callFunction("operator.getitem", [of, at]);
  const args = item(unflattened, 0);
  const positional = ownArgs.children.map((_, at) => item(args, at));
  const kwargs = item(unflattened, 1);
  const keywords = Object.fromEntries(namesOf(ownKwargs).map((key) => [key, item(kwargs, key)]));
  gm.addSubmodule(path, module);
  const node = graph.callModule(path, positional, keywords);
  const flattened = callWithSpec(gm, "torch.fx._pytree.tree_flatten_spec", node, outSpec);
  const inside = new Set(nodes);
  const isOutside = (user: Node): boolean => !inside.has(user);
  for (const [at, output] of outputs.entries()) {
    const before = named.get(output.name);
    if (before === undefined || !inside.has(before) || ![...before.users].some(isOutside)) continue;
    const after = item(flattened, at);
    before.replaceAllUsesWith(after, { propagateMeta: true });
    named.set(output.name, after);
  }
  const escaped = nodes.find((it) => [...it.users].some(isOutside));
  if (escaped !== undefined) {
    throw fxError("GraphArgument", `\`${path}\` makes a value that is used outside, and does not give it`, {
      node: escaped.name,
    });
  }
  eraseNodes(gm, nodes);
  return { node, flattened, unflattened, signature };
}

/** What stands for an argument in the graph; nothing where the exported module did not use it. */
function valueOf(argument: Argument, named: ReadonlyMap<string, Node>): ArgInput {
  if (argument.type !== "constant") return named.get(argument.name) ?? null;
  return argument.value.type === "None" ? null : argument.value.value;
}

/** Gives a module what another one gives, where it takes just that, and nothing else does. */
function connect(call: Swapped, calls: readonly Swapped[]): void {
  const { node, flattened, signature } = call;
  const next = calls.find(({ signature: { inSpec }, unflattened }) => {
    const [args, kwargs] = inSpec.children as readonly [TreeSpec, TreeSpec];
    const [only, ...others] = args.children;
    if (only === undefined || others.length > 0 || kwargs.children.length > 0) return false;
    if (JSON.stringify(only) !== JSON.stringify(signature.outSpec)) return false;
    const leaves = unflattened.args[0];
    return (
      Array.isArray(leaves) &&
      leaves.length === countLeaves(signature.outSpec) &&
      leaves.every((it, at) => isNode(it) && it.args[0] === flattened && it.args[1] === at) &&
      [...flattened.users].every(({ users }) => [...users].every((user) => user === unflattened))
    );
  });
  if (next !== undefined) next.node.args = [node];
}

/** The names of keyword arguments. */
function namesOf(kwargs: TreeSpec): string[] {
  return (keysOf(kwargs, { namedtupleFields: new Map() }) ?? []).map(String);
}
