/**
 * Arguments and targets as JavaScript expressions.
 *
 * @module
 */
import { DTYPES } from "../../../../bindings/dtypes.ts";
import { isMember } from "../../base/members.ts";
import { camelCase } from "../../base/naming.ts";
import type { Module } from "../../nn/module.ts";
import { isInt, isNode, type Arg, type Kwargs } from "../args.ts";
import type { Node } from "../node.ts";
import { isVerbatim, isVerbatimModule } from "../spelling.ts";
import {
  Complex,
  DeviceArg,
  Dict,
  DTypeArg,
  EllipsisType,
  Float,
  LayoutArg,
  List,
  MemoryFormatArg,
  OpArg,
  Slice,
  type Tuple,
} from "../../base/values.ts";
import { type CodeNames, functionPath } from "./globals.ts";
import { isIdentifier, memberAccess, propertyKey, stringLiteral } from "./text.ts";

/** What expressions are written with. */
export interface Scope {
  readonly names: CodeNames;
  /** The variable that holds the value of a node. */
  local(node: Node): string;
  /** The module whose attributes paths lead to, where it is known. */
  readonly owner: Module | undefined;
}

/** An argument. */
export function writeArg(arg: Arg, scope: Scope): string {
  if (arg === null) return "null";
  if (typeof arg === "boolean") return String(arg);
  if (typeof arg === "bigint") return `${arg}n`;
  if (typeof arg === "number") return writeNumber(arg);
  if (typeof arg === "string") return stringLiteral(arg);
  if (isNode(arg)) return scope.local(arg);
  const { names } = scope;
  if (arg instanceof Float) return writeFloat(arg, names);
  if (arg instanceof Complex) return writeComplex(arg, names);
  if (arg instanceof EllipsisType) return names.use("Ellipsis");
  if (arg instanceof DTypeArg) {
    return Object.hasOwn(DTYPES, arg.name) ? `${names.use("torch")}.${arg.name}` : writeMade("dtype", arg.name, names);
  }
  if (arg instanceof LayoutArg) return writeMade("layout", arg.name, names);
  if (arg instanceof MemoryFormatArg) return writeMade("memoryFormat", arg.name, names);
  if (arg instanceof DeviceArg) return writeMade("device", arg.toString(), names);
  if (arg instanceof OpArg) return writeMade("op", arg.name, names);
  if (arg instanceof Slice) return `${names.use("slice")}(${writeList([arg.start, arg.stop, arg.step], scope)})`;
  if (arg instanceof Dict) return writeObject([...arg], scope);
  if (arg instanceof List) return `[${writeList(arg, scope)}]`;
  return `${names.use("tuple")}(${writeList(arg satisfies Tuple, scope)})`;
}

/** Arguments of a call: the positional ones, and the keyword arguments as a trailing object of options. */
export function writeArguments(args: readonly Arg[], kwargs: Kwargs, scope: Scope, isVerbatimCall = false): string {
  const written = args.map((arg) => writeArg(arg, scope));
  const entries = Object.entries<Arg>(kwargs);
  const spelled = entries.map(([name, arg]) => [isVerbatimCall ? name : camelCase(name), arg] as const);
  // Names that only their spelling tells apart keep PyTorch's.
  const isDistinct = new Set(spelled.map(([name]) => name)).size === entries.length;
  if (entries.length > 0) written.push(writeObject(isDistinct ? spelled : entries, scope));
  return written.join(", ");
}

/** A call of a function by its qualified name. */
export function writeFunctionCall({ target, args, kwargs }: Node, scope: Scope): string {
  const [object, member, ...others] = args;
  if (target === "builtins.getattr" && others.length === 0 && Object.keys(kwargs).length === 0) {
    // What JavaScript's arrays have means something else in Python.
    const isPlain = typeof member === "string" && isIdentifier(member) && !(camelCase(member) in Array.prototype);
    if (object !== undefined && isPlain && isMember(member)) {
      return `${writeObjectOf(object, scope)}.${camelCase(member)}`;
    }
  }
  return `${writeFunction(target, scope.names)}(${writeArguments(args, kwargs, scope, isVerbatim(target))})`;
}

/** A function by its qualified name: a member of what this package exports, or a name of its own. */
function writeFunction(target: string, names: CodeNames): string {
  const [root, ...members] = functionPath(target) ?? [];
  return root === undefined ? names.functionName(target) : [names.use(root), ...members].join(".");
}

/** A call of a method of the first argument. */
export function writeMethodCall({ target, args, kwargs }: Node, scope: Scope): string {
  const [self = null, ...rest] = args;
  const given = writeArguments(rest, kwargs, scope);
  const object = writeObjectOf(self, scope);
  if (target === "__call__") return `${object}(${given})`;
  if (isMember(target)) return `${object}${memberAccess(camelCase(target))}(${given})`;
  // There is no such method, and this says so when it runs, as the interpreter does.
  return `${scope.names.use("builtins")}.getattr(${writeArg(self, scope)}, ${stringLiteral(target)})(${given})`;
}

/** A call of the module at a path. */
export function writeModuleCall({ target, args, kwargs }: Node, scope: Scope): string {
  const attribute = scope.owner?.findAttribute(target);
  // A module of the user's is called with the names that it was traced with, as the interpreter does.
  const isVerbatimCall = attribute?.kind === "module" && isVerbatimModule(attribute.module);
  return `${writePath(target, "getSubmodule", scope)}.forward(${writeArguments(args, kwargs, scope, isVerbatimCall)})`;
}

/** The attribute at a path. */
export function writeAttribute(path: string, scope: Scope): string {
  const kind = scope.owner?.findAttribute(path)?.kind;
  return writePath(path, kind === "module" ? "getSubmodule" : "getTensor", scope);
}

function writePath(path: string, getter: "getSubmodule" | "getTensor", { owner }: Scope): string {
  const names = namesOf(path, owner);
  if (names.every(isMember)) return `this${names.map(memberAccess).join("")}`;
  return `this.${getter}(${stringLiteral(path)})`;
}

/** The names along a path. A name that has dots itself is found whole first, as modules find it. */
function namesOf(path: string, owner: Module | undefined): string[] {
  if (owner === undefined) return path.split(".");
  if (owner.attributes.has(path)) return [path];
  for (let at = path.indexOf("."); at >= 0; at = path.indexOf(".", at + 1)) {
    const child = owner.attributes.get(path.slice(0, at));
    if (child?.kind !== "module" || child.module.findAttribute(path.slice(at + 1)) === undefined) continue;
    return [path.slice(0, at), ...namesOf(path.slice(at + 1), child.module)];
  }
  return path.split(".");
}

/** An expression that a member can be taken of: `1.real` is none. */
function writeObjectOf(arg: Arg, scope: Scope): string {
  return isNode(arg) ? scope.local(arg) : `(${writeArg(arg, scope)})`;
}

function writeList(args: readonly Arg[], scope: Scope): string {
  return Array.from(args, (arg) => writeArg(arg, scope)).join(", ");
}

function writeObject(entries: readonly (readonly [string, Arg])[], scope: Scope): string {
  if (entries.length === 0) return "{}";
  return `{ ${entries.map(([key, arg]) => writeEntry(key, arg, scope)).join(", ")} }`;
}

function writeEntry(name: string, arg: Arg, scope: Scope): string {
  const key = propertyKey(name);
  const value = writeArg(arg, scope);
  return isNode(arg) && key === value ? key : `${key}: ${value}`;
}

/** A value that is made from its name. */
function writeMade(maker: string, name: string, names: CodeNames): string {
  return `${names.use(maker)}(${stringLiteral(name)})`;
}

function writeNumber(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function writeFloat({ value, nanBits }: Float, names: CodeNames): string {
  if (nanBits !== undefined) return `${names.use("Float")}.ofBits(${writeBits(nanBits)})`;
  return isInt(value) ? `${names.use("float")}(${writeNumber(value)})` : writeNumber(value);
}

function writeComplex({ re, im, nanBits }: Complex, names: CodeNames): string {
  if (nanBits.every((bits) => bits === undefined)) {
    return `${names.use("complex")}(${writeNumber(re)}, ${writeNumber(im)})`;
  }
  const [reBits, imBits] = [re, im].map((part, at) => writeBits(nanBits[at] ?? bitsOf(part)));
  return `${names.use("Complex")}.ofBits(${reBits}, ${imBits})`;
}

function writeBits(bits: bigint): string {
  return `0x${bits.toString(16)}n`;
}

function bitsOf(value: number): bigint {
  return new BigUint64Array(new Float64Array([value]).buffer)[0] as bigint;
}
