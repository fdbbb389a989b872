/**
 * What the explorer tells of an item, and of the program as a whole, as data.
 *
 * @module
 */
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { ConstantValue, InputSpec, OutputSpec } from "../export/signature.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { NodeSource } from "../graph/nodeSource.ts";
import { formatArg } from "../graph/print.ts";
import type { GraphModel, Item } from "./model.ts";
import { type Step, STEP, stepOf } from "./steps.ts";

/** A line: what it is called, what it says, and the items that it leads to. */
export interface Row {
  readonly name: string;
  readonly value: string;
  readonly links?: readonly number[];
}

/** Lines under a title. `text` is longer text, such as a stack trace. */
export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
  readonly text?: string;
}

/** How many links a line has. */
const MOST_LINKS = 50;
/** How much of an argument is shown. */
const MOST_LETTERS = 400;

/** What there is to tell of an item. */
export function detailsOf(model: GraphModel, index: number): Section[] {
  const item = model.items[index] as Item;
  return item.node === undefined ? ofHolder(model, item) : ofNode(model, item, item.node);
}

function ofNode(model: GraphModel, item: Item, node: Node): Section[] {
  const rows: Row[] = [
    { name: "name", value: node.name },
    { name: "op", value: node.op },
    { name: "target", value: node.target },
  ];
  const value = model.value(item.index);
  if (value !== "") rows.push({ name: "value", value });
  if (node.type !== undefined) rows.push({ name: "type", value: node.type });
  const step = stepOf(node);
  const sections: Section[] = [{ title: item.isWeight ? "Weight" : step === undefined ? "Node" : "Step", rows }];
  if (step !== undefined) sections.push({ title: "What it takes", rows: stepRows(step) });
  const args = [...node.args].map((it, at): Row => argument(model, String(at), formatArg(it), it));
  const kwargs = Object.entries(node.kwargs).map(([name, it]): Row => argument(model, name, formatArg(it), it));
  if (args.length + kwargs.length > 0) sections.push({ title: "Arguments", rows: [...args, ...kwargs] });
  const users = [...node.users].flatMap((it) => model.indexOf(it) ?? []);
  if (users.length > 0) {
    sections.push({
      title: `Users: ${users.length}`,
      rows: [{ name: "", value: "", links: users.slice(0, MOST_LINKS) }],
    });
  }
  sections.push(...notes(node));
  return sections;
}

function argument(model: GraphModel, name: string, text: string, arg: unknown): Row {
  const value = text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text;
  const index = model.indexOf(arg as Node);
  return index === undefined ? { name, value } : { name, value: "", links: [index] };
}

function notes(node: Node): Section[] {
  const noted = notesOf(node);
  const sections: Section[] = [];
  const stack = noted?.get("nn_module_stack");
  if (stack instanceof Map) {
    const rows = [...(stack as Map<string, readonly string[]>).values()].map(
      ([path = "", type = ""]): Row => ({ name: path || "(root)", value: type }),
    );
    sections.push({ title: "Modules (nn_module_stack)", rows });
  }
  if (node.stackTrace !== undefined) sections.push({ title: "Source (stack_trace)", rows: [], text: node.stackTrace });
  const from = noted?.get("from_node");
  if (Array.isArray(from) && from.length > 0 && from.every((it) => it instanceof NodeSource)) {
    sections.push({ title: "Made of (from_node)", rows: from.flatMap((it) => sourceRows(it)) });
  }
  const told = new Set(["val", "nn_module_stack", "stack_trace", "from_node", "tensor_meta", "example_value", STEP]);
  const rest = [...(noted ?? [])].filter(([key]) => !told.has(key));
  if (rest.length > 0) {
    const rows = rest.map(([name, it]): Row => ({ name, value: noteText(it) }));
    sections.push({ title: "Other notes (meta)", rows });
  }
  return sections;
}

function sourceRows(source: NodeSource): Row[] {
  const rows: Row[] = [];
  for (let at: NodeSource | undefined = source; at !== undefined && rows.length < MOST_LINKS; at = at.fromNode[0]) {
    rows.push({ name: at.name, value: at.passName });
  }
  return rows;
}

function noteText(note: unknown): string {
  if (typeof note === "string") return note.slice(0, MOST_LETTERS);
  if (typeof note === "function") return note.name;
  if (typeof note !== "object" || note === null) return `${note as number}`;
  try {
    return JSON.stringify(note).slice(0, MOST_LETTERS);
  } catch {
    return note.constructor.name;
  }
}

function ofHolder(model: GraphModel, item: Item): Section[] {
  const kinds = { module: "Module", graph: "Graph", range: "Nodes", node: "Node" };
  const rows: Row[] = [
    { name: "name", value: item.title },
    { name: "class", value: item.caption },
    { name: "nodes", value: String(item.nNodes) },
  ];
  const weights = model.children(item.index).filter((it) => (model.items[it] as Item).isWeight);
  const sections: Section[] = [{ title: kinds[item.kind], rows }];
  if (weights.length > 0) {
    const shown = weights.slice(0, MOST_LINKS);
    const rowsOfWeights = shown.map((it): Row => ({ name: "", value: model.value(it), links: [it] }));
    sections.push({ title: `Weights: ${weights.length}`, rows: rowsOfWeights });
  }
  return sections;
}

/** What there is to tell of the program or graph module itself. */
export function overviewOf(model: GraphModel): Section[] {
  const { source, items } = model;
  const nWeights = items.filter((it) => it.isWeight).length;
  const counts: Row[] = [
    { name: "nodes", value: String(model.nNodes) },
    { name: "weights", value: String(nWeights) },
  ];
  if (!(source instanceof ExportedProgram)) {
    return [{ title: source.className, rows: [{ name: "kind", value: "GraphModule" }, ...counts] }];
  }
  const { inputSpecs, outputSpecs } = source.graphSignature;
  const inputs = inputSpecs.filter((it) => it.kind === "USER_INPUT");
  const nOf = (name: string): number | undefined => {
    const node = source.graph.findNodes({ op: "placeholder" }).find((it) => it.name === name);
    return node === undefined ? undefined : model.indexOf(node);
  };
  const sections: Section[] = [
    {
      title: "Program",
      rows: [
        { name: "written by", value: `torch ${source.torchVersion}` },
        { name: "dialect", value: source.dialect },
        ...counts,
      ],
    },
    { title: "Inputs", rows: inputs.map((it) => inputRow(model, it, nOf(it.arg.name))) },
    { title: "Outputs", rows: outputSpecs.map(outputRow) },
  ];
  const ranges = [...source.rangeConstraints].map(([name, { min, max }]): Row => {
    const most = max === undefined ? "∞" : String(max);
    return { name, value: `${min ?? "−∞"} … ${most}` };
  });
  if (ranges.length > 0) sections.push({ title: "Range constraints", rows: ranges });
  return sections;
}

function inputRow(model: GraphModel, { arg }: InputSpec, index: number | undefined): Row {
  const value = arg.type === "constant" ? constantText(arg.value) : index === undefined ? "" : model.value(index);
  return index === undefined ? { name: arg.name, value } : { name: arg.name, value, links: [index] };
}

function outputRow({ kind, arg, target }: OutputSpec): Row {
  const of = target === undefined ? "" : ` of ${target}`;
  return { name: arg.name, value: `${kind}${of}` };
}

function constantText(value: ConstantValue): string {
  return value.type === "None" ? "None" : String(value.value);
}

/** What there is to tell of a step of a plan. */
export function stepRows({ step, bytes, flops, milliseconds }: Step): Row[] {
  const rows: Row[] = [{ name: "step", value: step }];
  if (milliseconds !== null) rows.push({ name: "in the plan", value: `${milliseconds.toFixed(3)} ms` });
  rows.push({ name: "bytes", value: bytes.toLocaleString("en") });
  if (flops > 0) rows.push({ name: "FLOPs", value: flops.toLocaleString("en") });
  return rows;
}
