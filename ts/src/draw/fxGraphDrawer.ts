/**
 * Drawings of graphs, after `torch.fx.passes.graph_drawer`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkOptions } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { formatArg } from "../graph/print.ts";
import { List, Tuple } from "../base/values.ts";
import { type Arg, freezeArgs, freezeKwargs, type Kwargs } from "../graph/args.ts";
import { normalizeFunction } from "../fx/normalize.ts";
import type { TensorMetadata } from "../engine/tensorMetadata.ts";
import type { Module } from "../nn/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type DotAttributes, DotGraph, recordText } from "./dot.ts";
import { md5 } from "./md5.ts";

const DRAW_OPTIONS = [
  "ignoreGetattr",
  "ignoreParametersAndBuffers",
  "skipNodeNamesInArgs",
  "parseStackTrace",
  "dotGraphShape",
  "normalizeArgs",
] as const satisfies (keyof DrawOptions)[];

/** What a drawing shows. */
export interface DrawOptions {
  /** Whether `get_attr` nodes are left out. */
  readonly ignoreGetattr?: boolean;
  /** Whether the parameters and buffers of called modules are left out. */
  readonly ignoreParametersAndBuffers?: boolean;
  /** Whether arguments that are nodes are left out of the boxes, as they are unless turned off: arrows show them. */
  readonly skipNodeNamesInArgs?: boolean;
  /** Whether boxes say where in the traced code a node comes from. */
  readonly parseStackTrace?: boolean;
  /** The shape of the boxes, by Graphviz's names; by default records, whose fields are in lines. */
  readonly dotGraphShape?: string;
  /** Whether the arguments of functions are shown by name, where their parameters are known. */
  readonly normalizeArgs?: boolean;
}

const COLORS: Readonly<Partial<Record<Node["op"], string>>> = {
  placeholder: "AliceBlue",
  call_module: "LemonChiffon1",
  get_attr: "LightGrey",
  output: "PowderBlue",
};

/** The colours of functions and methods; the name of a target chooses one. */
const TARGET_COLORS = [
  "CadetBlue1",
  "Coral",
  "DarkOliveGreen1",
  "DarkSeaGreen1",
  "GhostWhite",
  "Khaki1",
  "LavenderBlush1",
  "LightSkyBlue",
  "MistyRose1",
  "MistyRose2",
  "PaleTurquoise2",
  "PeachPuff1",
  "Salmon",
  "Thistle1",
  "Thistle3",
  "Wheat1",
] as const;

/** How many items of a list a box shows. */
const MAX_ITEMS = 8;

/**
 * Draws the graph of a module, and those of the graph modules that it calls, with PyTorch's boxes and colours. After
 * `ShapeProp` the boxes show shapes too.
 *
 * @example
 * ```ts
 * import { FxGraphDrawer } from "tracefx/draw";
 *
 * const drawing = new FxGraphDrawer(gm, "resnet18").getDotGraph();
 * await writeFile("resnet18.svg", await drawing.toSvg());
 * ```
 */
export class FxGraphDrawer {
  readonly #name: string;
  readonly #options: DrawOptions;
  readonly #graphs = new Map<string, DotGraph>();

  constructor(module: GraphModule, name: string, options: DrawOptions = {}) {
    checkGraphModule("FxGraphDrawer", module);
    checkOptions("FxGraphDrawer", options, DRAW_OPTIONS);
    this.#name = name;
    this.#options = options;
    this.#graphs.set(name, this.#draw(module, name));
    for (const node of module.graph.nodes) {
      const called = node.op === "call_module" ? moduleOf(module, node) : undefined;
      if (!(called instanceof GraphModule)) continue;
      const path = `${name}_${node.target}`;
      this.#graphs.set(path, this.#draw(called, path));
    }
  }

  /** The drawing of the module, or of a graph module that it calls, by its path. */
  getDotGraph(submodule?: string): DotGraph {
    const path = submodule === undefined ? this.#name : `${this.#name}_${submodule}`;
    const found = this.#graphs.get(path);
    if (found !== undefined) return found;
    throw fxError("AttributeMissing", `the graph calls no graph module \`${submodule}\``, {
      help: `there are drawings of ${[...this.#graphs.keys()].join(", ")}`,
    });
  }

  /** All drawings by name: the module's own, and `name_path` for each graph module that it calls. */
  getAllDotGraphs(): ReadonlyMap<string, DotGraph> {
    return this.#graphs;
  }

  #draw(module: GraphModule, name: string): DotGraph {
    const res = new DotGraph(name);
    const { ignoreGetattr = false, ignoreParametersAndBuffers = false } = this.#options;
    const nodes = Array.from(module.graph.nodes).filter(({ op }) => !ignoreGetattr || op !== "get_attr");
    for (const node of nodes) {
      const called = node.op === "call_module" ? moduleOf(module, node) : undefined;
      res.addNode(node.name, {
        label: this.#label(node, called),
        ...style(colorOf(node), this.#options.dotGraphShape),
      });
      if (called !== undefined && !ignoreParametersAndBuffers && !(called instanceof GraphModule)) {
        drawState(res, node, called, this.#options.dotGraphShape);
      }
    }
    for (const node of nodes) for (const user of node.users) res.addEdge(node.name, user.name);
    return res;
  }

  #label(node: Node, called: Module | undefined): string {
    const fields = [`name=%${recordText(node.name)}`, `op_code=${node.op}\\n`];
    if (called === undefined) {
      fields.push(`target=${recordText(node.target)}\\n`);
      const { args, kwargs } = this.#options.normalizeArgs === true ? normalized(node) : node;
      fields.push(...this.#arguments("args=(", ")", [...args].map(shortArg)));
      const named = Object.entries(kwargs).map(([key, arg]) => `${key}: ${shortArg(arg)}`);
      fields.push(...this.#arguments("kwargs={", "}", named));
      fields.push(`num_users=${node.users.size}\\n`);
    } else {
      fields.push(`${recordText(called.className)}\\n`, `${recordText(called.extraRepr())}\\n`);
    }
    fields.push(...metaFields(node.meta.get("tensor_meta")));
    const frame = this.#options.parseStackTrace === true ? node.stackTrace?.split("\n", 1)[0] : undefined;
    if (frame !== undefined) fields.push(`file=${recordText(frame)}\\n`);
    return `{${fields.join("|")}}`;
  }

  #arguments(head: string, tail: string, texts: readonly string[]): string[] {
    const { skipNodeNamesInArgs = true } = this.#options;
    const shown = (skipNodeNamesInArgs ? texts.filter((it) => !it.includes("%")) : texts).map(recordText);
    if (shown.length === 0) return [];
    const [open, close] = [recordText(head), recordText(tail)];
    if (shown.length === 1) return [`${open}${shown.join("")},${close}`];
    return [`${open}\\l${shown.join(",\\n")},\\n${close}\\l`];
  }
}

/** The arguments of a function by name, or as they are where its parameters are not known or do not decide. */
function normalized(node: Node): { readonly args: readonly Arg[]; readonly kwargs: Kwargs } {
  if (node.op !== "call_function") return node;
  try {
    const found = normalizeFunction(node.target, node, { normalizeToOnlyUseKwargs: true });
    return found === undefined
      ? node
      : { args: freezeArgs(found.args as Arg[]), kwargs: freezeKwargs(found.kwargs as Kwargs) };
  } catch {
    // As in PyTorch: several overloads may take the arguments.
    return node;
  }
}

function style(fillcolor: string, shape = "record"): DotAttributes {
  return { shape, fillcolor, style: "filled,rounded", fontcolor: "#000000" };
}

function colorOf({ op, target }: Node): string {
  // PyTorch takes the first 32 bits of the digest, of which 16 colours need the last digit.
  return COLORS[op] ?? (TARGET_COLORS[Number.parseInt(md5(target).slice(7, 8), 16)] as string);
}

/** The parameters and buffers of a called module, each in a box. */
function drawState(graph: DotGraph, node: Node, module: Module, shape: string | undefined): void {
  const draw = (tensors: ReadonlyMap<string, Tensor>, kind: string): void => {
    for (const [name, tensor] of tensors) {
      const path = `${node.name}.${name}`;
      const label = `{${recordText(path)}|op_code=get_${kind}\\l|torch.${tensor.dtype}[${tensor.shape.join(", ")}]\\n}`;
      graph.addNode(path, { label, ...style("Salmon", shape) });
      graph.addEdge(path, node.name);
    }
  };
  draw(module.namedParameters(), "parameter");
  draw(module.namedBuffers(), "buffer");
}

function moduleOf(module: GraphModule, { target, name }: Node): Module {
  const found = module.findAttribute(target);
  if (found?.kind === "module") return found.module;
  throw fxError("AttributeMissing", `there is no module \`${target}\``, { node: name });
}

/** An argument, with the first items of long lists. */
function shortArg(arg: Arg): string {
  if (!(arg instanceof List || arg instanceof Tuple) || arg.length <= MAX_ITEMS) return formatArg(arg);
  const shown = Array.from(arg).slice(0, MAX_ITEMS).map(formatArg).join(", ");
  return arg instanceof List ? `[${shown}, ...]` : `(${shown}, ...)`;
}

/** What is known of the tensors of a value, as `ShapeProp` notes it. */
function metaFields(meta: unknown): string[] {
  if (Array.isArray(meta)) return meta.flatMap(metaFields);
  if (!isOptions(meta)) return [];
  if (!isMetadata(meta)) return Object.values(meta).flatMap(metaFields);
  const { dtype, shape, requiresGrad, stride } = meta;
  return [
    `dtype=torch.${dtype}\\n`,
    `shape=${recordText(pythonTuple(shape))}\\n`,
    `requires_grad=${requiresGrad ? "True" : "False"}\\n`,
    `stride=${recordText(pythonTuple(stride))}\\n`,
  ];
}

function isMetadata(meta: object): meta is TensorMetadata {
  return "dtype" in meta && "shape" in meta && "stride" in meta && "requiresGrad" in meta;
}

function pythonTuple(items: readonly number[]): string {
  return items.length === 1 ? `(${items.join("")},)` : `(${items.join(", ")})`;
}
