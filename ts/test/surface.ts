/**
 * The public surface of the package, read from its sources: what each export is, and which parameters take an object of
 * options. Tests go over it, so that what is added to the package is tested without being listed.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vite";

const SRC = fileURLToPath(new URL("../src", import.meta.url));
const PACKAGE = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
};

/** A node of a syntax tree of TypeScript. */
// oxlint-disable-next-line typescript/no-explicit-any -- the tree of a language has a hundred types of nodes
type Syntax = any;

/** A declaration and the file that it is in. */
interface Declared {
  readonly file: string;
  readonly node: Syntax;
}

/** A parameter that takes an object of options. */
export interface OptionSite {
  /** The function, class or member: `exportProgram`, `Tracer`, `Module.stateDict`. */
  readonly name: string;
  /** The names of the options. */
  readonly options: readonly string[];
}

const files = new Map<string, { readonly body: readonly Syntax[]; readonly text: string }>();

function parsed(file: string): { readonly body: readonly Syntax[]; readonly text: string } {
  let res = files.get(file);
  if (res === undefined) {
    const text = readFileSync(file, "utf8");
    res = { text, body: (parseAst(text, { lang: "ts" }, file) as Syntax).body };
    files.set(file, res);
  }
  return res;
}

function fileOf(from: string, source: string): string | undefined {
  if (!source.startsWith(".")) return undefined;
  const path = resolve(dirname(from), source);
  return existsSync(path) ? path : undefined;
}

/** The declaration of a name in a file, be it imported there. */
function lookUp(file: string, name: string): Declared | undefined {
  for (const statement of parsed(file).body) {
    const node = statement.declaration ?? statement;
    if (node.id?.name === name && statement.type !== "ExportDefaultDeclaration") return { file, node };
    if (node.type === "VariableDeclaration") {
      const found = node.declarations.find((it: Syntax) => it.id.name === name);
      if (found !== undefined) return { file, node: found };
    }
    if (statement.type === "ImportDeclaration") {
      const found = statement.specifiers.find((it: Syntax) => it.local.name === name);
      const from = found?.type === "ImportSpecifier" ? fileOf(file, statement.source.value) : undefined;
      if (from !== undefined) return exported(from, found.imported.name);
    }
  }
  return exported(file, name);
}

/** What a file exports under a name. */
function exported(file: string, name: string): Declared | undefined {
  return exportsOf(file).get(name);
}

const known = new Map<string, Map<string, Declared>>();

/** All that a file exports by name; a namespace's members are under `namespace.member`. */
function exportsOf(file: string): Map<string, Declared> {
  const before = known.get(file);
  if (before !== undefined) return before;
  const res = new Map<string, Declared>();
  known.set(file, res);
  for (const statement of parsed(file).body) {
    const from = statement.source ? fileOf(file, statement.source.value) : undefined;
    if (statement.type === "ExportAllDeclaration" && from !== undefined) {
      const prefix = statement.exported === null ? "" : `${statement.exported.name}.`;
      for (const [name, it] of exportsOf(from)) if (!res.has(prefix + name)) res.set(prefix + name, it);
    }
    if (statement.type !== "ExportNamedDeclaration") continue;
    const node = statement.declaration;
    if (node?.type === "VariableDeclaration") {
      for (const it of node.declarations) if (it.id.type === "Identifier") res.set(it.id.name, { file, node: it });
    } else if (node?.id) {
      const isSignature = node.type === "TSDeclareFunction";
      if (!isSignature || !res.has(node.id.name)) res.set(node.id.name, { file, node });
    }
    for (const it of statement.specifiers) {
      const found = from === undefined ? lookUp(file, it.local.name) : exported(from, it.local.name);
      if (found !== undefined) res.set(it.exported.name, found);
    }
  }
  return res;
}

/** The entry points of the package, by the path that they are imported from. */
export function entryPoints(): Map<string, string> {
  const res = new Map<string, string>();
  for (const [path, target] of Object.entries(PACKAGE.exports)) {
    if (typeof target === "string") continue;
    res.set(path, join(SRC, relative("dist", target.default)).replace(/\.js$/, ".ts"));
  }
  return res;
}

/** Everything that the package exports. */
export function publicNames(): Map<string, Declared> {
  const res = new Map<string, Declared>();
  for (const [path, file] of entryPoints()) {
    const before = new Set(Array.from(res.values(), ({ node }) => node));
    for (const [name, it] of exportsOf(file)) {
      // What another entry point exports, too, is there already.
      if (!before.has(it.node)) res.set(path === "." ? name : `${path.slice(2)}:${name}`, it);
    }
  }
  // What stands in the namespace `torch` and is written by hand.
  for (const [prefix, file] of [
    ["torch.", "torch/contexts.ts"],
    ["torch.library.", "library/library.ts"],
  ]) {
    for (const [name, it] of exportsOf(join(SRC, file as string))) res.set(`${prefix}${name}`, it);
  }
  return res;
}

/** The parameters of the public surface that take an object of options. */
export function optionSites(): OptionSite[] {
  const res = new Map<string, OptionSite>();
  const add = (name: string, file: string, params: readonly Syntax[]): void => {
    for (const it of params) {
      const param = it.type === "TSParameterProperty" ? it.parameter : it;
      const target = param.type === "AssignmentPattern" ? param.left : param;
      const type = target.typeAnnotation?.typeAnnotation;
      const isOptional = param.type === "AssignmentPattern" || target.optional === true;
      const options = type === undefined ? undefined : optionsOf(type, file, isOptional);
      if (options !== undefined) res.set(name, { name, options });
    }
  };
  for (const [name, { file, node }] of publicNames()) {
    for (const [member, params] of callables(node, file)) add(member === "" ? name : `${name}.${member}`, file, params);
  }
  return [...res.values()];
}

/** A member of a class or an interface, as it is declared. */
export type Member = Syntax;

/** The public members of a class or an interface by name, with those that it inherits; of an object its properties. */
export function membersOfClass({ file, node }: Declared): ReadonlyMap<string, Member> {
  const res = new Map<string, Member>();
  if (node.type === "TSTypeAliasDeclaration") {
    for (const it of node.typeAnnotation.members ?? []) if (it.key?.name) res.set(it.key.name, it);
    return res;
  }
  if (node.type === "VariableDeclarator") {
    const object = node.init?.type === "CallExpression" ? node.init.arguments[0] : (node.init?.expression ?? node.init);
    if (object?.type === "ObjectExpression") for (const it of object.properties) res.set(it.key?.name, it);
    return res;
  }
  if (node.type !== "ClassDeclaration" && node.type !== "TSInterfaceDeclaration") return res;
  const parents =
    node.type === "ClassDeclaration" ? [node.superClass] : node.extends.map((it: Syntax) => it.expression);
  for (const it of parents) {
    const found = it?.type === "Identifier" ? lookUp(file, it.name) : undefined;
    if (found !== undefined) for (const [name, member] of membersOfClass(found)) res.set(name, member);
  }
  for (const it of node.body.body) {
    if (it.accessibility === "private" || isInternal(it, file)) continue;
    if (it.key?.type === "Identifier" && it.kind !== "constructor") res.set(it.key.name, it);
    if (it.kind !== "constructor") continue;
    for (const param of it.value.params) {
      const name = param.type === "TSParameterProperty" && (param.parameter.left ?? param.parameter).name;
      if (name) res.set(name, param);
    }
  }
  return res;
}

/** The ways to call a declaration: itself, and the members of a class or an interface. */
function* callables(node: Syntax, file: string): Generator<readonly [member: string, params: readonly Syntax[]]> {
  switch (node.type) {
    case "FunctionDeclaration":
    case "TSDeclareFunction":
      yield ["", node.params];
      break;
    case "VariableDeclarator": {
      const type = node.id.typeAnnotation?.typeAnnotation;
      if (type?.type === "TSFunctionType") yield ["", type.params];
      else yield* functionsIn(node.init);
      break;
    }
    case "ClassDeclaration":
      for (const it of node.body.body) {
        const isPublic = it.accessibility === undefined || it.accessibility === null || it.accessibility === "public";
        if (!isPublic || it.key?.type === "PrivateIdentifier" || it.key === undefined) continue;
        if (isInternal(it, file)) continue;
        const params = it.value?.params as readonly Syntax[] | undefined;
        if (params === undefined) continue;
        if (it.kind === "constructor") yield ["", params];
        else if (it.key.type === "Identifier") yield [it.key.name as string, params];
      }
      break;
    case "TSInterfaceDeclaration":
      for (const it of node.body.body) {
        if (it.type === "TSMethodSignature") yield [it.key.name as string, it.params];
        if (it.type === "TSCallSignatureDeclaration") yield ["", it.params];
      }
      break;
  }
}

/** The functions that are given to what makes a variable: `defineFunction(name, (x) => …)`. */
function* functionsIn(init: Syntax): Generator<readonly [member: string, params: readonly Syntax[]]> {
  if (init === null || init === undefined) return;
  if (init.type === "ArrowFunctionExpression" || init.type === "FunctionExpression") yield ["", init.params];
  if (init.type === "CallExpression") for (const it of init.arguments) yield* functionsIn(it);
  if (init.type === "TSAsExpression") yield* functionsIn(init.expression);
}

function isInternal(node: Syntax, file: string): boolean {
  const before = parsed(file).text.slice(0, node.start).trimEnd();
  if (!before.endsWith("*/")) return false;
  return before.slice(before.lastIndexOf("/**")).includes("@internal");
}

/** The names of the options that a type has, where it is one of objects of options. */
function optionsOf(type: Syntax, file: string, isOptional: boolean): readonly string[] | undefined {
  if (type.type === "TSUnionType") {
    return (type.types as Syntax[]).map((it) => optionsOf(it, file, false)).find((it) => it !== undefined);
  }
  const members = membersOf(type, file);
  if (members === undefined || members.length === 0) return undefined;
  const named = type.type === "TSTypeReference" ? String(type.typeName.name) : "";
  const isNamedSo = /(Options|Config|Settings|Update|Bounds)$/.test(named);
  if (!isNamedSo && !(isOptional && members.every((it) => it.optional))) return undefined;
  return members.map((it) => it.name);
}

interface Property {
  readonly name: string;
  readonly optional: boolean;
}

/** The properties of a type of objects without methods; nothing of any other type. */
function membersOf(type: Syntax, file: string): readonly Property[] | undefined {
  if (type.type === "TSTypeLiteral") return properties(type.members);
  if (type.type === "TSIntersectionType") {
    const parts = type.types.map((it: Syntax) => membersOf(it, file)) as (readonly Property[] | undefined)[];
    return parts.includes(undefined) ? undefined : (parts.flat() as Property[]);
  }
  if (type.type !== "TSTypeReference" || type.typeName.type !== "Identifier") return undefined;
  const name = type.typeName.name as string;
  const given = type.typeArguments?.params ?? [];
  if (["Partial", "Omit", "Pick", "Readonly"].includes(name)) {
    const [, keys] = given;
    const listed: readonly string[] = (keys?.types ?? [keys]).map((it: Syntax) => it?.literal?.value as string);
    return membersOf(given[0], file)
      ?.filter((it) => name === "Partial" || name === "Readonly" || listed.includes(it.name) === (name === "Pick"))
      .map((it) => ({ ...it, optional: it.optional || name === "Partial" }));
  }
  const found = lookUp(file, name);
  if (found?.node.type === "TSTypeAliasDeclaration") return membersOf(found.node.typeAnnotation, found.file);
  if (found?.node.type !== "TSInterfaceDeclaration") return undefined;
  const inherited = ((found.node.extends ?? []) as Syntax[]).map((it) =>
    membersOf({ type: "TSTypeReference", typeName: it.expression, typeArguments: it.typeArguments }, found.file),
  );
  const own = properties(found.node.body.body);
  if (own === undefined || inherited.includes(undefined)) return undefined;
  return [...(inherited.flat() as Property[]), ...own];
}

function properties(members: readonly Syntax[]): readonly Property[] | undefined {
  const isProperty = (it: Syntax): boolean =>
    it.type === "TSMethodSignature" || (it.type === "TSPropertySignature" && it.key.type === "Identifier");
  if (!members.every(isProperty)) return undefined;
  return members.map((it) => ({ name: it.key.name as string, optional: it.optional === true }));
}
