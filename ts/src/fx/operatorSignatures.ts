/**
 * The signatures of PyTorch's functions, and which calls of them write to an argument: the rest of
 * `torch.fx.operator_schemas`.
 *
 * @module
 */
import { checkArguments, checkText } from "../base/given.ts";
import type { Kwargs } from "../graph/args.ts";
import { repr } from "../graph/print.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { type OperatorSchema, type SchemaParameter, typeMatches as takes } from "../functions/schemas.ts";
import type { ArgumentType } from "../functions/schemas.ts";
import type { Arg } from "../graph/args.ts";
import { traceError } from "../record/stack.ts";
import { isBindable, schemasOfFunction } from "./normalize.ts";

/** A parameter of a function of PyTorch's. */
export interface SignatureParameter {
  /** Its name in Python; the tensor that has a method is called `input`. */
  readonly name: string;
  /** Its type as the schema writes it, such as `Tensor?` or `SymInt[2]`. */
  readonly type: string;
  /** How it is given. */
  readonly kind: "positional" | "positional-or-keyword" | "keyword";
  /** What it is where it is not given; `undefined` where it has to be. */
  readonly default: Arg | undefined;
  /** Whether the function writes to it. */
  readonly isMutated: boolean;
}

/** One way to call a function of PyTorch's. */
export class OperatorSignature {
  /** The name of the overload; empty for the one without. */
  readonly overload: string;
  /** The parameters, in order. */
  readonly parameters: readonly SignatureParameter[];

  /** For {@link getSignatureForTorchOp} only. */
  constructor(overload: string, parameters: readonly SignatureParameter[]) {
    this.overload = overload;
    this.parameters = parameters;
  }

  /** Whether the function writes to an argument. */
  get isMutable(): boolean {
    return this.parameters.some((it) => it.isMutated);
  }

  /** Python's `str(signature)`, without what is returned: `(input: torch.Tensor, *, out: torch.Tensor)`. */
  toString(): string {
    const parts: string[] = [];
    let previous: SignatureParameter["kind"] | undefined;
    for (const { name, type, kind, default: initial } of this.parameters) {
      if (previous === "positional" && kind !== "positional") parts.push("/");
      if (previous !== "keyword" && kind === "keyword") parts.push("*");
      previous = kind;
      parts.push(`${name}: ${pythonType(type)}${initial === undefined ? "" : ` = ${repr(initial)}`}`);
    }
    if (previous === "positional") parts.push("/");
    return `(${parts.join(", ")})`;
  }
}

const PYTHON_TYPES: Readonly<Record<string, string>> = {
  Tensor: "torch.Tensor",
  Scalar: "numbers.Number",
  SymInt: "int",
  ScalarType: "int",
  Layout: "int",
  MemoryFormat: "int",
  Device: "torch.device",
};

function pythonType(type: string): string {
  if (type.endsWith("?")) return `Optional[${pythonType(type.slice(0, -1))}]`;
  const [, element] = /^(.+)\[\d*\]$/.exec(type) ?? [];
  if (element !== undefined) return `List[${pythonType(element)}]`;
  return PYTHON_TYPES[type] ?? type;
}

const TENSOR: SignatureParameter = {
  name: "self",
  type: "Tensor",
  kind: "positional-or-keyword",
  default: undefined,
  isMutated: false,
};

/** `torch.nonzero`, whose results Python gives in two ways. */
const NONZERO: readonly OperatorSignature[] = [
  new OperatorSignature("", [TENSOR]),
  new OperatorSignature("", [TENSOR, { ...TENSOR, name: "as_tuple", type: "bool", kind: "keyword" }]),
];

/**
 * The ways to call a function of PyTorch's or an operator, in the order in which they are tried:
 * `torch.fx.operator_schemas.get_signature_for_torch_op`. `undefined` where nothing is known of it, such as of the functions of
 * `torch.nn.functional`, which are written in Python.
 *
 * @example
 * ```ts
 * getSignatureForTorchOp(torch.relu)?.map(String); // ["(input: torch.Tensor)", "(input: torch.Tensor, *, out: torch.Tensor)"]
 * ```
 */
export function getSignatureForTorchOp(op: string | NamedTarget): readonly OperatorSignature[] | undefined {
  const target = targetOf(op);
  if (target === "torch.nonzero") return NONZERO;
  const schemas = schemasOfFunction(target) ?? [];
  if (schemas.length === 0) return undefined;
  return schemas.map((it) => new OperatorSignature(it.overload, it.parameters.map(parameterOf)));
}

function parameterOf({ name, type, kind, default: initial, isMutated }: SchemaParameter): SignatureParameter {
  return { name, type, kind: kind as SignatureParameter["kind"], default: initial as Arg | undefined, isMutated };
}

/**
 * Refuses a call that writes to an argument, where exactly one way to call the function takes the arguments:
 * `torch.fx.operator_schemas.check_for_mutable_operation`. Tracers whose `checkMutableOperations` is set ask it of each call.
 *
 * @example
 * ```ts
 * checkForMutableOperation("torch.relu_", [x], {}); // Tried to trace mutable operation aten::relu_
 * ```
 */
export function checkForMutableOperation(
  target: string | NamedTarget,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> | Kwargs,
): void {
  checkArguments("checkForMutableOperation", args, kwargs);
  const name = targetOf(target);
  // Its signatures are Python's own, of which torch.fx asks nothing.
  if (name === "torch.nonzero") return;
  const matching = (schemasOfFunction(name) ?? []).filter((it) => isBindable(it.parameters, name, { args, kwargs }));
  const [only] = matching;
  if (only === undefined || matching.length > 1 || !only.parameters.some((it) => it.isMutated)) return;
  const reason = `Tried to trace mutable operation ${schemaName(name, only)}`;
  throw traceError("TraceUnsupported", reason, {
    help: "FX only supports functional code: call the function that gives the result, and not the one that writes it, as those with `out` do",
  });
}

/** The name of an overload, as schemas begin: `aten::add.out`. */
function schemaName(target: string, { text }: OperatorSchema): string {
  const [, namespace = "aten"] = /^torch\.ops\.(\w+)\./.exec(target) ?? [];
  return `${namespace}::${text.slice(0, text.indexOf("("))}`;
}

/**
 * Whether a parameter of this type takes an argument of that one: `torch.fx.operator_schemas.type_matches`. The first is a type
 * as schemas write it.
 *
 * @example
 * ```ts
 * typeMatches("SymInt[]", "int"); // true: one number stands for a list of one
 * ```
 */
export function typeMatches(signatureType: string, argumentType: ArgumentType): boolean {
  checkText("typeMatches", "the type of the parameter", signatureType, 'such as "Tensor?"');
  checkText("typeMatches", "the type of the argument", argumentType, 'such as "Tensor"');
  return takes(signatureType, argumentType);
}
