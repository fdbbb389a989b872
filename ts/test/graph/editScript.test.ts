import { describe, expect, test } from "vitest";
import type { ErrorName } from "../../src/bindings/errors.ts";
import { FxError } from "../../src/errors.ts";
import type { ArgInput } from "../../src/graph/args.ts";
import type { Graph } from "../../src/graph/graph.ts";
import type { Node } from "../../src/graph/node.ts";
import { build, cases, decode, encode, type Encoded, type EncodedGraph } from "./corpus.ts";

interface RecordedError {
  readonly type: string;
  readonly msg: string;
}

interface Step {
  readonly step: [verb: string, ...operands: Encoded[]];
  readonly r?: Encoded;
  readonly error?: RecordedError;
}

interface Case {
  readonly name: string;
  readonly before: EncodedGraph;
  readonly steps: Step[];
  readonly after: EncodedGraph;
  readonly final_lint: RecordedError | null;
  readonly n_nodes: number;
  readonly find_nodes: { readonly [target: string]: string[] };
}

/** Our code for each refusal that PyTorch recorded, by the beginning of its text. */
const KINDS: readonly (readonly [beginning: string, kind: ErrorName])[] = [
  ["Tried to erase Node", "NodeHasUsers"],
  ["insert_args index", "GraphArgument"],
  ["list assignment index out of range", "GraphArgument"],
  ["Argument '", "GraphInvalid"],
];

function kindOf({ msg }: RecordedError): ErrorName {
  const found = KINDS.find(([beginning]) => msg.startsWith(beginning));
  if (found === undefined) throw new Error(`no code for ${msg}`);
  return found[1];
}

function names(nodes: Iterable<Node>): string[] {
  return Array.from(nodes, (it) => it.name);
}

/** Does one step and returns what PyTorch recorded of it. */
function run(graph: Graph, [verb, ...operands]: Step["step"]): Encoded {
  const node = (at: number): Node => {
    const found = graph.find(operands[at] as string);
    if (found === undefined) throw new Error(`no node ${String(operands[at])}`);
    return found;
  };
  const value = (it: Encoded): ArgInput => decode(it, (name) => graph.find(name) as Node);
  switch (verb) {
    case "call_function": {
      const [target, args, where] = operands as [string, Encoded[], string, string];
      const make = (): Node => graph.callFunction(target, args.map(value));
      if (where === "before") return graph.insertingBefore(node(3), make).name;
      if (where === "after") return graph.insertingAfter(node(3), make).name;
      return make().name;
    }
    case "replace_all_uses_with": {
      const only = operands[2] as string[] | null;
      return names(node(0).replaceAllUsesWith(node(1), { filter: (it) => only === null || only.includes(it.name) }));
    }
    case "erase_node":
      graph.eraseNode(node(0));
      return null;
    case "set_args":
      node(0).args = (operands[1] as Encoded[]).map(value);
      return names(node(0).allInputNodes);
    case "set_kwargs": {
      const kwargs = Object.entries(operands[1] as { [key: string]: Encoded });
      node(0).kwargs = new Map(kwargs.map(([key, it]) => [key, value(it)]));
      return names(node(0).allInputNodes);
    }
    case "update_arg":
      node(0).updateArg(operands[1] as number, value(operands[2] as Encoded));
      return null;
    case "insert_arg":
      node(0).insertArg(operands[1] as number, value(operands[2] as Encoded));
      return null;
    case "replace_input_with":
      node(0).replaceInputWith(node(1), node(2));
      return null;
    case "prepend":
      node(0).prepend(node(1));
      return null;
    case "append":
      node(0).append(node(1));
      return null;
    case "node_copy":
      return graph.nodeCopy(node(0)).name;
    case "_rename":
      return node(0).rename(operands[1] as string);
    case "lint":
      graph.lint();
      return null;
    default:
      throw new Error(`unknown verb ${verb}`);
  }
}

function outcome(body: () => Encoded): { r: Encoded } | { error: ErrorName } {
  try {
    return { r: body() };
  } catch (error) {
    if (error instanceof FxError) return { error: error.kind };
    throw error;
  }
}

describe("edits as PyTorch does them", () => {
  test.each(cases<Case>("edit_script"))("$name", (it) => {
    const graph = build(it.before);
    expect(encode(graph), "before the first edit").toEqual(it.before);
    for (const [at, { step, r, error }] of it.steps.entries()) {
      const wanted = error === undefined ? { r } : { error: kindOf(error) };
      expect(
        outcome(() => run(graph, step)),
        `step ${at}: ${JSON.stringify(step)}`,
      ).toEqual(wanted);
    }
    expect(encode(graph)).toEqual(it.after);
    expect(graph.nodes.length).toBe(it.n_nodes);
    const lint = outcome(() => run(graph, ["lint"]));
    expect(lint).toEqual(it.final_lint === null ? { r: null } : { error: kindOf(it.final_lint) });
    for (const [target, found] of Object.entries(it.find_nodes)) {
      expect(graph.findNodes({ op: "call_function", target }).map((node) => node.name)).toEqual(found);
    }
  });
});
