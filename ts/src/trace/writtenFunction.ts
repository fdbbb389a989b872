/**
 * What a file says about a function in it: its name, its class, the functions that it names, and what it would decide about what
 * it is given.
 *
 * @module
 */
import { hasFunctionNamed } from "../functions/table.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type Analysis, analyse } from "./analysis/analysis.ts";
import { KEYED_METHODS, METHODS } from "./analysis/calls.ts";
import { check, type CheckResult, type Given, type Reached } from "./analysis/check.ts";
import type { MethodCall } from "./analysis/knowledge.ts";
import { boundNames } from "./analysis/scope.ts";
import { parameter } from "./analysis/signature.ts";
import {
  bare,
  children,
  type ClassSyntax,
  type FunctionSyntax,
  isFunction,
  keyName,
  type Syntax,
} from "./analysis/syntax.ts";
import type { Script, WrittenFunction } from "./scripts.ts";

/** Whether a function is a method of something that may be a module, and does not make it. */
export function isOfModule(around: readonly Syntax[]): boolean {
  const owner = around.findLast(isClass);
  const method = around.findLast((it) => it.type === "MethodDefinition");
  return Boolean(owner?.superClass) && method?.kind !== "constructor";
}

export function className(around: readonly Syntax[]): string | undefined {
  return around.findLast(isClass)?.id?.name;
}

function isClass(node: Syntax): node is ClassSyntax {
  return node.type === "ClassDeclaration" || node.type === "ClassExpression";
}

/** The name that a function is written with. */
export function nameOf(node: FunctionSyntax, parent: Syntax | undefined): string | undefined {
  if (node.id) return node.id.name;
  if (parent === undefined) return undefined;
  if (parent.type === "AssignmentExpression") {
    const { left } = parent;
    return left.type === "MemberExpression"
      ? keyName(left.property, left.computed)
      : left.type === "Identifier"
        ? left.name
        : undefined;
  }
  if (parent.type === "VariableDeclarator") return parent.id.type === "Identifier" ? parent.id.name : undefined;
  return "key" in parent && parent.key ? keyName(parent.key, "computed" in parent && parent.computed) : undefined;
}

/** The function in a tree that V8 says to begin at a place: at its name where it is a method. */
export function functionFrom(
  root: Syntax,
  { line, column }: { readonly line: number; readonly column: number },
): FunctionSyntax | undefined {
  const begins = (it: Syntax): boolean => it.loc?.start.line === line && it.loc.start.column === column - 1;
  for (const node of withAll(root)) {
    if (isFunction(node) && begins(node)) return node;
    const isMember = node.type === "MethodDefinition" || node.type === "Property";
    if (isMember && isFunction(node.value) && (begins(node) || begins(node.key))) return node.value;
  }
  return undefined;
}

function* withAll(node: Syntax): Generator<Syntax> {
  yield node;
  for (const child of children(node)) yield* withAll(child);
}

/** What a function is given. */
export interface GivenToFunction {
  /** Whether each parameter is traced, or what a generator without parameters is sent; undefined where it is not known. */
  readonly traced: readonly boolean[] | undefined;
  /** Whether what it is called on may have traced values. */
  readonly isOnTraced: boolean;
}

/** Checks a function in its file, with the functions of the file that it names. A second time is free. */
export function readWritten(written: WrittenFunction, given: GivenToFunction): CheckResult<FunctionSyntax> {
  const results = RESULTS.get(written.node) ?? new Map<string, CheckResult<FunctionSyntax>>();
  RESULTS.set(written.node, results);
  const key = keyOfGiven(given);
  const result = results.get(key) ?? checkWritten(written, given);
  results.set(key, result);
  return result;
}

const RESULTS = new WeakMap<FunctionSyntax, Map<string, CheckResult<FunctionSyntax>>>();

/** The same text for the same. */
export function keyOfGiven({ traced, isOnTraced }: GivenToFunction): string {
  return `${traced === undefined ? "?" : traced.join()}${isOnTraced ? " on traced" : ""}`;
}

function checkWritten(
  { script, node, around }: WrittenFunction,
  { traced, isOnTraced }: GivenToFunction,
): CheckResult<FunctionSyntax> {
  const names = node.params.map((it, index) => parameter(it, index, script.text).name);
  const concrete = new Set(traced === undefined ? [] : names.filter((_, index) => traced[index] !== true));
  if (traced !== undefined && traced[0] !== true) concrete.add("yield");
  if (traced !== undefined && traced.slice(names.length).every((it) => !it)) concrete.add("arguments");
  const file = namedAround(node, around);
  const owner = around.findLast(isClass);
  const parsed = { source: script.text, shift: 0, isMethod: false };
  const analyses = new Map<FunctionSyntax, Analysis>();
  const analyseOnce = (fn: FunctionSyntax): Analysis => {
    const known = analyses.get(fn) ?? analyse({ ...parsed, node: fn }, {}, file, owner);
    analyses.set(fn, known);
    return known;
  };
  const given: Given = { concrete, given: new Set(names) };
  return check<FunctionSyntax>(node, given, {
    analyse: analyseOnce,
    nameOf: (fn) => fn.id?.name ?? "the function",
    isTraced: (path) => isOnTraced || isPartOfTensor(path),
    methods: (call) => methodsAround(call, around),
    // A parameter that is called is a function.
    isRecorder: (method) => method !== undefined && isMethodOfTensors(method),
  });
}

/** Whether this is a part of something that can only be a tensor: `this.x.shape`. */
function isPartOfTensor(path: readonly string[]): boolean {
  return path.slice(1).some((name, index) => {
    if (name === "shape") return true;
    const isCalled = index === path.length - 2;
    return isCalled && isMethodOfTensors(name) && !METHODS.has(name) && !KEYED_METHODS.has(name);
  });
}

/** Whether tensors have a method of this name. */
export function isMethodOfTensors(name: string): boolean {
  return hasFunctionNamed(name) || name in Tensor.prototype;
}

/** The methods of the class or object that a function is written in. */
function methodsAround({ root, path }: MethodCall, around: readonly Syntax[]): Reached<FunctionSyntax>[] {
  const name = path.at(-1) ?? "";
  // What calls a module, the tracer sees; containers decide nothing but what is found without reading them.
  if (name === "forward" || name === "call" || METHODS.has(name) || KEYED_METHODS.has(name)) return [];
  if (root === "super" || path.length !== 1) return ["opaque"];
  const owner = around.findLast((it) => it.type === "ClassBody" || it.type === "ObjectExpression");
  const members: readonly Syntax[] =
    owner?.type === "ClassBody" ? owner.body : owner?.type === "ObjectExpression" ? owner.properties : [];
  const methods = members.flatMap((it) => {
    if (it.type !== "MethodDefinition" && it.type !== "PropertyDefinition" && it.type !== "Property") return [];
    if (!it.value || keyName(it.key, it.computed) !== name) return [];
    const value = bare(it.value);
    const isAccessor = it.type !== "PropertyDefinition" && (it.kind === "get" || it.kind === "set");
    return isFunction(value) && !isAccessor ? [{ fn: value }] : [];
  });
  return methods.length === 0 ? ["opaque"] : methods;
}

/** The functions around a function that it names, and those that they name. */
function namedAround(node: Syntax, around: readonly Syntax[]): Syntax[] {
  const wanted = [node];
  const seen = new Set<string>();
  const found = new Set<Syntax>();
  for (let next = wanted.pop(); next !== undefined; next = wanted.pop()) {
    for (const name of namesIn(next)) {
      if (seen.has(name)) continue;
      seen.add(name);
      const declaration = declarationOf(name, around)?.at(-1);
      if (declaration === undefined || found.has(declaration)) continue;
      found.add(declaration);
      wanted.push(declaration);
    }
  }
  return [...found].filter((it) => !around.includes(it) && it !== node);
}

function* namesIn(node: Syntax): Generator<string> {
  if (node.type === "Identifier") yield node.name;
  for (const child of children(node)) yield* namesIn(child);
}

/**
 * The statement around a function that declares a name as a function or class, or as an object where one is wanted, and as nothing
 * else nearer to it, behind those that it stands in.
 */
export function declarationOf(
  name: string,
  around: readonly Syntax[],
  isObject = false,
): readonly Syntax[] | undefined {
  for (let depth = around.length - 1; depth >= 0; depth--) {
    const outer = around[depth] as Syntax;
    const path = around.slice(0, depth + 1);
    const statements = "body" in outer && Array.isArray(outer.body) ? (outer.body as Syntax[]) : [];
    for (const statement of statements) {
      const it = statement.type === "ExportNamedDeclaration" ? (statement.declaration ?? statement) : statement;
      if ((it.type === "FunctionDeclaration" || it.type === "ClassDeclaration") && it.id?.name === name)
        return [...path, it];
      if (it.type !== "VariableDeclaration") continue;
      const declarator = it.declarations.find(({ id }) => [...boundNames(id)].includes(name));
      if (declarator === undefined) continue;
      const isOne = it.kind === "const" && it.declarations.length === 1 && declarator.init;
      const init = isOne ? bare(isOne) : undefined;
      const isWanted = init && (isObject ? init.type === "ObjectExpression" : isFunction(init));
      return isWanted ? [...path, it] : undefined;
    }
    if (isFunction(outer) && outer.params.some((it) => [...boundNames(it)].includes(name))) return undefined;
  }
  return undefined;
}

/** Whether a function has a variable of this name, and not one of those that are written in it. */
export function declares(fn: FunctionSyntax, name: string): boolean {
  return fn.params.some((it) => [...boundNames(it)].includes(name)) || declaresWithin(fn.body, name);
}

function declaresWithin(node: Syntax, name: string): boolean {
  if (isFunction(node)) return false;
  if (node.type === "VariableDeclarator" && [...boundNames(node.id)].includes(name)) return true;
  for (const child of children(node)) if (declaresWithin(child, name)) return true;
  return false;
}

/** The function that runs where what a statement declares is called: none for a class that says nothing of how it is made. */
export function functionDeclared(path: readonly Syntax[]): Omit<WrittenFunction, "script"> | "nothing" | undefined {
  const declaration = path.at(-1);
  if (declaration?.type === "FunctionDeclaration")
    return isFunction(declaration) ? { node: declaration, around: path.slice(0, -1) } : undefined;
  if (declaration?.type === "VariableDeclaration") {
    const [declarator] = declaration.declarations;
    const node = declarator?.init && bare(declarator.init);
    return declarator && node && isFunction(node) ? { node, around: [...path, declarator] } : undefined;
  }
  if (declaration?.type !== "ClassDeclaration") return undefined;
  const method = declaration.body.body.find((it) => it.type === "MethodDefinition" && it.kind === "constructor");
  if (method?.type === "MethodDefinition") return { node: method.value, around: [...path, declaration.body, method] };
  return declaration.superClass ? undefined : "nothing";
}

/** The functions that an object or class has that is declared around; undefined where not all of them stand there. */
export function membersDeclared(
  name: string,
  around: readonly Syntax[],
): Omit<WrittenFunction, "script">[] | undefined {
  const path = declarationOf(name, around, true);
  const declaration = path?.at(-1);
  if (path === undefined || declaration === undefined) return undefined;
  if (declaration.type === "ClassDeclaration") {
    const inherited =
      declaration.superClass?.type === "Identifier" ? membersDeclared(declaration.superClass.name, around) : undefined;
    const own = functionsAmong(declaration.body.body, [...path, declaration.body]);
    return declaration.superClass ? own && inherited && [...own, ...inherited] : own;
  }
  const [declarator] = declaration.type === "VariableDeclaration" ? declaration.declarations : [];
  const object = declarator?.init && bare(declarator.init);
  if (declarator === undefined || object?.type !== "ObjectExpression") return undefined;
  return functionsAmong(object.properties, [...path, declarator, object]);
}

/** The functions among members; undefined where one of them may be a function that stands elsewhere. */
function functionsAmong(
  members: readonly Syntax[],
  around: readonly Syntax[],
): Omit<WrittenFunction, "script">[] | undefined {
  const found: Omit<WrittenFunction, "script">[] = [];
  for (const member of members) {
    if (member.type === "StaticBlock") continue;
    if (member.type !== "MethodDefinition" && member.type !== "PropertyDefinition" && member.type !== "Property")
      return undefined;
    const value = member.value && bare(member.value);
    if (!value || value.type === "Literal") continue;
    if (!isFunction(value)) return undefined;
    found.push({ node: value, around: [...around, member] });
  }
  return found;
}

export function isImportedFromHere({ program }: Script, callee: string): boolean {
  const [root] = callee.split(".");
  return (
    program !== undefined &&
    program.body.some(
      (it) =>
        it.type === "ImportDeclaration" &&
        /^tracefx(?:\/|$)/.test(String(it.source.value)) &&
        it.specifiers.some(({ local }) => local.name === root),
    )
  );
}
