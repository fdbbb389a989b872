/**
 * The schemas of operators, as far as normalization needs them: the parameters with their types and defaults.
 *
 * @module
 */
import { NORMALIZATION_SCHEMAS, SCHEMAS } from "../../../bindings/schemas.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { type Arg, freezeArg } from "../graph/args.ts";
import { float, List } from "../base/values.ts";
import { recordsOf } from "../base/records.ts";
import type { Parameter } from "./signature.ts";

/** A parameter of an operator. */
export interface SchemaParameter extends Parameter {
  /** Its type as the schema writes it, such as `Tensor?` or `SymInt[2]`. */
  readonly type: string;
  /** Its name in the schema, where the tensor that has a method is `self`. */
  readonly key: string;
  /** Whether the operator writes to it. */
  readonly isMutated: boolean;
  /** Whether a result may lie in its memory, as a view does. */
  readonly isAliased: boolean;
}

/** An overload of an operator. */
export interface OperatorSchema {
  /** The schema's own text. */
  readonly text: string;
  /** The name of the overload; empty for the one without. */
  readonly overload: string;
  readonly parameters: readonly SchemaParameter[];
}

let lines: ReadonlyMap<string, readonly string[]> | undefined;
const parsed = new Map<string, readonly OperatorSchema[]>();

/**
 * The overloads of an operator of `aten`, or of one of your own such as `mylib.foo`, in the order in which PyTorch tries them; none where there is no such operator.
 *
 * @example
 * ```ts
 * schemasOf("add").map((it) => it.overload); // ["Tensor", "Scalar"]
 * ```
 */
export function schemasOf(operator: string): readonly OperatorSchema[] {
  const known = parsed.get(operator);
  if (known !== undefined) return known;
  lines ??= linesByOperator();
  const res = (lines.get(operator) ?? []).map(parseSchema);
  // What is not there is not remembered: any number of names may be asked for.
  if (res.length > 0) parsed.set(operator, res);
  return res;
}

/**
 * Adds an overload, such as `foo.two(Tensor x, int n=1)`, to the operator `mylib.foo`, in the place of one of that name, and
 * gives its parameters.
 */
export function defineSchema(operator: string, line: string): readonly SchemaParameter[] {
  const schema = parseSchema(line);
  const others = schemasOf(operator).filter((it) => it.overload !== schema.overload);
  parsed.set(operator, [...others, schema]);
  return schema.parameters;
}

let itemsOf: ReadonlyMap<string, readonly string[]> | undefined;
const normalized = new Map<string, readonly OperatorSchema[]>();

/**
 * The overloads that torch.fx binds a call of a function against, in its order: those of an operator, such as `add`, and those
 * that nothing is executed by: on Python's numbers and lists, and with `out`. A function whose name is not an operator's, such
 * as `math.ceil`, has its own; `undefined` where nothing is listed of it.
 */
export function normalizationSchemasOf(name: string): readonly OperatorSchema[] | undefined {
  itemsOf ??= itemsByName();
  const listed = itemsOf.get(name);
  const isPython = name.includes(".");
  if (listed === undefined) return isPython ? undefined : schemasOf(name);
  const operator = name.slice(name.lastIndexOf(".") + 1);
  const registered = schemasOf(operator);
  const known = normalized.get(name);
  // What is defined by hand comes last, and may come at any time.
  const own = isPython ? [] : registered.filter((it) => !listed.some((item) => isOf(item, it)));
  if (known !== undefined) return own.length === 0 ? known : [...known, ...own];
  const res = listed.flatMap((item) => {
    const same = registered.find((it) => isOf(item, it));
    if (same !== undefined) return [same];
    if (item.includes("(")) return [withWrites(parseSchema(`${operator}.${item}`.replace(".default(", "(")), operator)];
    const [, overload = "", base, outputs = ""] = /^(\w+)=(\w+)\+(.+)$/.exec(item) ?? [];
    const schema = registered.find((it) => (it.overload || "default") === base);
    return schema === undefined ? [] : [writing(schema, operator, overload, outputs)];
  });
  normalized.set(name, res);
  return own.length === 0 ? res : [...res, ...own];
}

/** The table does not say what is written to: the first parameter of an operator in place, and results by name. */
function withWrites(schema: OperatorSchema, operator: string): OperatorSchema {
  const isOut = /(?:^|_)out/.test(schema.overload);
  const parameters = schema.parameters.map((it, at) => {
    const isResult = isOut && it.kind === "keyword" && it.default === undefined && it.type.startsWith("Tensor");
    return isResult || (at === 0 && /[^_]_$/.test(operator)) ? { ...it, isMutated: true } : it;
  });
  return { ...schema, parameters };
}

/** Whether an item of the table stands for this overload. */
function isOf(item: string, { overload }: OperatorSchema): boolean {
  return /^\w*/.exec(item)?.[0] === (overload || "default");
}

function itemsByName(): ReadonlyMap<string, readonly string[]> {
  const res = new Map<string, readonly string[]>();
  for (const line of recordsOf(NORMALIZATION_SCHEMAS)) {
    const [names = "", rest = ""] = line.split(":");
    const list = rest.trim() === "" ? [] : rest.trim().split(" | ");
    for (const name of names.split(" ")) res.set(name, list);
  }
  return res;
}

/** What a tensor that is written to has already, so that it is not told. */
const OPTIONS: ReadonlySet<string> = new Set(["dtype", "layout", "device", "pin_memory"]);

/** An overload that does what another one does and writes to tensors. */
function writing(base: OperatorSchema, operator: string, overload: string, outputs: string): OperatorSchema {
  const makesTensor = base.parameters.some((it) => it.key === "layout");
  const { text } = base;
  const parts = splitParameters(text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")));
  const kept = makesTensor ? parts.filter((it) => !OPTIONS.has(/(\w+)(?:=.*)?$/.exec(it)?.[1] ?? "")) : parts;
  const out = outputs
    .split(",")
    .map((it) => (it.endsWith("[]") ? `Tensor(a!)[] ${it.slice(0, -2)}` : `Tensor(a!) ${it}`));
  return parseSchema(`${operator}.${overload}(${[...kept, ...(kept.includes("*") ? [] : ["*"]), ...out].join(", ")})`);
}

function linesByOperator(): ReadonlyMap<string, readonly string[]> {
  const res = new Map<string, string[]>();
  for (const line of recordsOf(SCHEMAS)) {
    const name = line.slice(0, line.search(/[.(]/));
    const group = res.get(name);
    if (group === undefined) res.set(name, [line]);
    else group.push(line);
  }
  return res;
}

/** Reads `name.overload(Type name=default, *, …)`; the first tensor, `self`, is called `input` as in Python. */
function parseSchema(text: string): OperatorSchema {
  const open = text.indexOf("(");
  const [, overload = ""] = text.slice(0, open).split(".");
  const parameters: SchemaParameter[] = [];
  let kind: Parameter["kind"] = "positional-or-keyword";
  for (const part of splitParameters(text.slice(open + 1, text.lastIndexOf(")")))) {
    if (part === "*") {
      kind = "keyword";
      continue;
    }
    const [, type = "", name = "", initial] = /^(.+) (\w+)(?:=(.+))?$/.exec(part) ?? [];
    // A word of Python cannot be a keyword argument, so what comes up to it is positional only.
    if (name === "from") for (const [at, it] of parameters.entries()) parameters[at] = { ...it, kind: "positional" };
    parameters.push({
      name: name === "self" ? "input" : name,
      key: name,
      isMutated: /\([a-z]!/.test(type),
      isAliased: /\([a-z]/.test(type),
      kind: name === "from" ? "positional" : kind,
      type: type.replace(/\([a-z]!?(?:\|[a-z])*(?: -> \*)?\)/g, ""),
      default: initial === undefined ? undefined : defaultValue(initial, type, text),
    });
  }
  return { text, overload, parameters };
}

/** The parts between the commas that are in no brackets. */
function splitParameters(text: string): string[] {
  return text === "" ? [] : text.split(/,\s*(?![^[(]*[\])])/);
}

/** The numbers of PyTorch's layouts, memory formats and reductions, by the word in the schema. */
const WORDS: ReadonlyMap<string, Arg> = new Map<string, Arg>([
  ["None", null],
  ["True", true],
  ["False", false],
  ["Mean", 1],
  ["contiguous_format", 0],
  ["long", 4],
]);

function defaultValue(text: string, type: string, schema: string): Arg {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (/^["']/.test(text)) return text.slice(1, -1);
  if (text.startsWith("[")) {
    const items = text
      .slice(1, -1)
      .split(",")
      .filter((it) => it.trim() !== "");
    return freezeArg(items.map((it) => defaultValue(it.trim(), type.replace(/\[.*/, ""), schema)));
  }
  const number = Number(text);
  if (Number.isNaN(number)) throw malformed(schema);
  const isFloat = /[.e]/.test(text) || type.startsWith("float");
  const value = freezeArg(isFloat ? float(number) : BigInt(text));
  // One number stands for as many as the list has.
  const [, count] = /\[(\d+)\]/.exec(type) ?? [];
  return count === undefined ? value : List.frozen(Array.from({ length: Number(count) }, () => value));
}

function malformed(schema: string): FxError {
  return fxError("SchemaMalformed", `the schema ${schema} has a default that is not understood`);
}

/**
 * The type of an argument, where overloads must be told apart: one of Python's names, or a list or tuple of one.
 * `Tensor[]` is a list of tensors.
 */
export type ArgumentType =
  | "Tensor"
  | "int"
  | "float"
  | "bool"
  | "complex"
  | "str"
  | "None"
  | "dtype"
  | "device"
  | "layout"
  | "memory_format"
  | `${"Tensor" | "int" | "float" | "bool" | "complex" | "str"}[]`;

/** For TorchScript dtypes, layouts and memory formats are ints; of the three, PyTorch takes a dtype for one. */
const INTS: readonly ArgumentType[] = ["int", "bool", "dtype"];

/** What the types of schemas take. There are others, such as `Generator`, that take nothing. */
const TAKES: Readonly<Record<string, readonly ArgumentType[]>> = {
  Tensor: ["Tensor"],
  Scalar: ["int", "float", "bool", "complex"],
  int: INTS,
  SymInt: INTS,
  ScalarType: INTS,
  Layout: INTS,
  MemoryFormat: INTS,
  float: ["float"],
  bool: ["bool"],
  complex: ["complex"],
  str: ["str"],
  Device: ["device"],
};

/** Whether a parameter of this type takes an argument of that one: `torch.fx.operator_schemas.type_matches`. */
export function typeMatches(type: string, argument: ArgumentType): boolean {
  if (type.endsWith("?")) return argument === "None" || typeMatches(type.slice(0, -1), argument);
  const [, element] = /^(.+)\[\d*\]$/.exec(type) ?? [];
  if (element === undefined) return (TAKES[type] ?? []).includes(argument);
  // An int is promoted to a list of one.
  if (argument === "int") return element === "int" || element === "SymInt";
  if (!argument.endsWith("[]") || element.endsWith("?")) return false;
  return typeMatches(element, argument.slice(0, -2) as ArgumentType);
}
