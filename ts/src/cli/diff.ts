/**
 * `npx tracefx diff`: where two programs differ, as lines and as JSON. Nodes are matched as the explorer matches them.
 *
 * @module
 */
import { styleText } from "node:util";
import { load } from "../export/load.ts";
import type { ExportedProgram } from "../export/exportedProgram.ts";
import type { InputSpec, OutputSpec } from "../export/signature.ts";
import { compareModels } from "../explorer/diff.ts";
import { GraphModel } from "../explorer/model.ts";
import { Float } from "../base/values.ts";
import { formatNode, repr } from "../graph/print.ts";
import { type Tensor, tensorBytes } from "../tensor/tensor.ts";
import { printable } from "./printable.ts";

/** Something that one program has and the other has not, or has otherwise: lines of the first, and of the second. */
export interface DiffEntry {
  readonly before?: string;
  readonly after?: string;
}

/** Where two programs differ. */
export interface ProgramDiff {
  readonly isSame: boolean;
  /** Nodes, those of the graphs of branches and loops among them, in the order of the programs. */
  readonly graph: readonly DiffEntry[];
  /** Inputs and outputs by place. Outputs are told without the names of their nodes, which exports choose as they like. */
  readonly signature: readonly DiffEntry[];
  /** The ranges of symbols by place: exports name symbols as they like. */
  readonly constraints: readonly DiffEntry[];
  /** Parameters, buffers and constants by name. */
  readonly tensors: readonly DiffEntry[];
}

/** Compares two programs. */
export function diffPrograms(before: ExportedProgram, after: ExportedProgram): ProgramDiff {
  const graph = graphDiff(before, after);
  const [a, b] = [before.graphSignature, after.graphSignature];
  const signature = [
    ...byPlace(a.inputSpecs.map(input), b.inputSpecs.map(input)),
    ...byPlace(a.outputSpecs.map(output), b.outputSpecs.map(output)),
  ];
  const constraints = byPlace(rangesOf(before), rangesOf(after));
  const tensors = tensorDiff(tensorsOf(before), tensorsOf(after));
  const isSame = [graph, signature, constraints, tensors].every((it) => it.length === 0);
  return { isSame, graph, signature, constraints, tensors };
}

/** Opens two programs, and tells where they differ. */
export async function diffFiles(
  files: readonly [string, string],
  limits: Readonly<Record<string, number>>,
  isJson: boolean,
): Promise<{ readonly text: string; readonly isSame: boolean }> {
  using before = await load(files[0], { limits });
  using after = await load(files[1], { limits });
  const diff = diffPrograms(before, after);
  const { isSame, ...parts } = diff;
  return { text: isJson ? JSON.stringify({ is_same: isSame, ...parts }) : textOf(diff, files), isSame };
}

function graphDiff(before: ExportedProgram, after: ExportedProgram): DiffEntry[] {
  const [first, second] = [new GraphModel(before), new GraphModel(after)];
  const diff = compareModels(first, second);
  const res: DiffEntry[] = [];
  let next = 0;
  // What is added stands where the second program has it: before the match of what comes next in the first.
  const added = (end: number): void => {
    for (; next < end; next++) {
      const line = diff.after.get(next) === "added" ? lineOf(second, next) : undefined;
      if (line !== undefined) res.push({ after: line });
    }
  };
  for (const { index } of first.items) {
    const line = lineOf(first, index);
    if (line === undefined) continue;
    const match = diff.matches.get(index);
    if (match === undefined) {
      res.push({ before: line });
      continue;
    }
    added(match);
    if (diff.changed.has(index)) res.push({ before: line, after: lineOf(second, match) ?? "" });
  }
  added(second.items.length);
  return res;
}

/** A node and what is known of its value; undefined for a module, whose nodes are compared. */
function lineOf(model: GraphModel, index: number): string | undefined {
  const node = model.items[index]?.node;
  if (node === undefined) return undefined;
  const value = model.value(index);
  return value === "" ? formatNode(node) : `${formatNode(node)}  # ${value}`;
}

function input({ kind, arg, target, persistent }: InputSpec): string {
  const saved = persistent === false ? ", not saved" : "";
  return `input ${arg.name}: ${kind}${target === undefined ? "" : ` ${target}`}${saved}${constantOf(arg)}`;
}

function output({ kind, arg, target }: OutputSpec, place: number): string {
  return `output ${place}: ${kind}${target === undefined ? "" : ` ${target}`}${constantOf(arg)}`;
}

function constantOf(arg: InputSpec["arg"]): string {
  if (arg.type !== "constant") return "";
  const { value } = arg;
  if (value.type === "None") return " = None";
  return ` = ${repr(value.type === "float" ? new Float(value.value) : value.value)}`;
}

function rangesOf(program: ExportedProgram): string[] {
  return Array.from(program.rangeConstraints.values(), ({ min, max }) => `[${min ?? "-oo"}, ${max ?? "oo"}]`);
}

function tensorsOf(program: ExportedProgram): Map<string, Tensor | undefined> {
  const res = new Map<string, Tensor | undefined>(program.stateDict);
  for (const [name, it] of program.constants) res.set(name, it.kind === "tensor" ? it.tensor : undefined);
  return res;
}

function tensorDiff(before: ReadonlyMap<string, Tensor | undefined>, after: typeof before): DiffEntry[] {
  const res: DiffEntry[] = [];
  for (const [name, a] of before) {
    const b = after.get(name);
    if (!after.has(name)) {
      res.push({ before: constantLine(name, a) });
      continue;
    }
    const [first, second] = [constantLine(name, a), constantLine(name, b)];
    if (first !== second) res.push({ before: first, after: second });
    else if (a !== undefined && b !== undefined && !areEqual(tensorBytes(a), tensorBytes(b))) {
      res.push({ before: first, after: `${second}, of other values` });
    }
  }
  for (const [name, b] of after) if (!before.has(name)) res.push({ after: constantLine(name, b) });
  return res;
}

function constantLine(name: string, it: Tensor | undefined): string {
  return it === undefined ? `${name}: an object` : `${name}: ${it.dtype}[${it.shape.join(", ")}]`;
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** What stands in the same place, where it differs. */
function byPlace(before: readonly string[], after: readonly string[]): DiffEntry[] {
  const res: DiffEntry[] = [];
  for (let at = 0; at < Math.max(before.length, after.length); at++) {
    const [a, b] = [before[at], after[at]];
    if (a === b) continue;
    res.push({ ...(a !== undefined && { before: a }), ...(b !== undefined && { after: b }) });
  }
  return res;
}

/** As `diff -u` writes it, with colours where a person reads it. */
function textOf(diff: ProgramDiff, files: readonly [string, string]): string {
  if (diff.isSame) return "The programs are the same.";
  const lines = [inColor("bold", `--- ${printable(files[0])}`), inColor("bold", `+++ ${printable(files[1])}`)];
  const parts = { graph: diff.graph, signature: diff.signature, constraints: diff.constraints, tensors: diff.tensors };
  for (const [name, entries] of Object.entries(parts)) {
    if (entries.length === 0) continue;
    const count = entries.length === 1 ? "1 difference" : `${entries.length} differences`;
    lines.push(inColor("cyan", `@@ ${name}: ${count} @@`));
    for (const { before, after } of entries) {
      if (before !== undefined) lines.push(inColor("red", `- ${printable(before)}`));
      if (after !== undefined) lines.push(inColor("green", `+ ${printable(after)}`));
    }
  }
  return lines.join("\n");
}

function inColor(style: "red" | "green" | "cyan" | "bold", text: string): string {
  return styleText(style, text, { stream: process.stdout });
}
