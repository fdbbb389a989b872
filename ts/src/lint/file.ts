/**
 * What a file says about the modules in it, and about what it traces.
 *
 * @module
 */
import type { AnyNode, Class } from "acorn";
import { bare, children, type FunctionSyntax, isFunction, keyName } from "../trace/analysis/syntax.ts";

/** A class that is a module. */
export interface ModuleClass {
  readonly methods: ReadonlyMap<string, FunctionSyntax>;
  readonly getters: ReadonlyMap<string, FunctionSyntax>;
  /** The members that are parameters. */
  readonly parameters: ReadonlySet<string>;
  /** The class that it extends, if it is in the file. */
  readonly base: ModuleClass | undefined;
}

/** A function that a trace would run. */
export interface TracedFunction {
  readonly node: FunctionSyntax;
  readonly module: ModuleClass | undefined;
  /** The parameters that are given as plain values. */
  readonly concrete: ReadonlySet<string>;
}

/** What a file says. */
export interface FileFacts {
  /** The functions that are traced: `forward` of modules, and what is given to `symbolicTrace`. */
  readonly traced: readonly TracedFunction[];
  /** The names under which the file has imported parts of tracefx. */
  readonly own: ReadonlySet<string>;
}

/** Reads a file. */
export function factsOf(program: AnyNode): FileFacts {
  const file = new File(program);
  const forwards = [...file.modules.values()].flatMap((module) => {
    const node = module.methods.get("forward");
    return node === undefined ? [] : [{ node, module, concrete: plainParameters(node) }];
  });
  return { traced: [...forwards, ...file.traced], own: file.own };
}

const TRACING = new Set(["symbolicTrace", "trace"]);

class File {
  readonly modules = new Map<AnyNode, ModuleClass>();
  readonly traced: TracedFunction[] = [];
  readonly #classes = new Map<string, AnyNode & Class>();
  readonly #functions = new Map<string, FunctionSyntax>();
  readonly own: ReadonlySet<string>;

  constructor(program: AnyNode) {
    const nodes = [...all(program)];
    this.own = importsOf(nodes);
    for (const node of nodes) this.#declare(node);
    for (const node of nodes) {
      if (node.type === "ClassDeclaration" || node.type === "ClassExpression") this.#module(node);
      else if (node.type === "CallExpression") this.#call(node);
    }
  }

  #declare(node: AnyNode): void {
    if (node.type === "ClassDeclaration" && node.id !== null) this.#classes.set(node.id.name, node);
    else if (node.type === "FunctionDeclaration" && node.id !== null) this.#functions.set(node.id.name, node);
    else if (node.type === "VariableDeclarator" && node.id.type === "Identifier" && node.init) {
      const value = bare(node.init);
      if (isFunction(value)) this.#functions.set(node.id.name, value);
      else if (value.type === "ClassExpression") this.#classes.set(node.id.name, value);
    }
  }

  /** A class is a module if it extends one: something of tracefx, something called a Module, a module of the file. */
  #module(node: AnyNode & Class, above: readonly AnyNode[] = []): ModuleClass | undefined {
    const known = this.modules.get(node);
    if (known !== undefined || !node.superClass || above.includes(node)) return known;
    const base = bare(node.superClass);
    const [name, root] = nameOf(base);
    const local = base.type === "Identifier" ? this.#classes.get(base.name) : undefined;
    const inner = local === undefined ? undefined : this.#module(local, [...above, node]);
    if (inner === undefined && !(local === undefined && (name.endsWith("Module") || this.own.has(root))))
      return undefined;
    const module: ModuleClass = {
      methods: methodsOf(node, false),
      getters: methodsOf(node, true),
      parameters: parametersOf(node),
      base: inner,
    };
    this.modules.set(node, module);
    return module;
  }

  #call(node: AnyNode & { type: "CallExpression" }): void {
    const [name] = nameOf(bare(node.callee));
    const [first, options] = node.arguments;
    if (!TRACING.has(name) || first === undefined) return;
    const value = bare(first);
    const fn = value.type === "Identifier" ? this.#functions.get(value.name) : value;
    if (fn === undefined || !isFunction(fn)) return;
    const concrete = new Set([...plainParameters(fn), ...concreteArgs(options)]);
    this.traced.push({ node: fn, module: undefined, concrete });
  }
}

/** The names under which a file has imported parts of tracefx. */
export function importsOf(nodes: readonly AnyNode[]): Set<string> {
  const imports = nodes.filter((it) => it.type === "ImportDeclaration");
  const own = imports.filter((it) => /^tracefx(\/|$)/.test(String(it.source.value)));
  return new Set(own.flatMap((it) => it.specifiers.map(({ local }) => local.name)));
}

/** The last name of `a.b.c`, and the first. */
export function nameOf(node: AnyNode): [last: string, first: string] {
  if (node.type === "Identifier") return [node.name, node.name];
  if (node.type !== "MemberExpression") return ["", ""];
  return [keyName(node.property, node.computed) ?? "", nameOf(bare(node.object))[1]];
}

function methodsOf(node: AnyNode & Class, areGetters: boolean): Map<string, FunctionSyntax> {
  const methods = new Map<string, FunctionSyntax>();
  for (const member of node.body.body) {
    if (member.type === "StaticBlock" || !("key" in member) || member.static || !member.value) continue;
    if (("kind" in member && member.kind === "get") !== areGetters) continue;
    const name = keyName(member.key, member.computed);
    // An abstract method, or one of several signatures, has no body.
    if (name !== undefined && isFunction(member.value) && member.value.body) methods.set(name, member.value);
  }
  return methods;
}

/** The members that are assigned a `Parameter`, or registered as one. */
function parametersOf(node: AnyNode & Class): Set<string> {
  const names = new Set<string>();
  const add = (name: string | undefined): void => {
    if (name !== undefined) names.add(name);
  };
  for (const it of all(node)) {
    if (it.type === "PropertyDefinition" && it.value && makesParameter(it.value)) add(keyName(it.key, it.computed));
    else if (it.type === "AssignmentExpression" && it.left.type === "MemberExpression" && makesParameter(it.right))
      add(keyName(it.left.property, it.left.computed));
    else if (it.type === "CallExpression" && nameOf(bare(it.callee))[0] === "registerParameter" && it.arguments[0])
      add(keyName(it.arguments[0], true));
  }
  return names;
}

function makesParameter(node: AnyNode): boolean {
  const it = bare(node);
  return it.type === "NewExpression" && nameOf(bare(it.callee))[0] === "Parameter";
}

/** The names in `{ concreteArgs: { … } }`. */
function concreteArgs(options: AnyNode | undefined): string[] {
  const given = options === undefined ? undefined : property(options, "concreteArgs");
  if (given?.type !== "ObjectExpression") return [];
  return given.properties.flatMap((it) => (it.type === "Property" ? (keyName(it.key, it.computed) ?? []) : []));
}

function property(node: AnyNode, name: string): AnyNode | undefined {
  const it = bare(node);
  if (it.type !== "ObjectExpression") return undefined;
  const found = it.properties.find((one) => one.type === "Property" && keyName(one.key, one.computed) === name);
  return found?.type === "Property" ? bare(found.value) : undefined;
}

/**
 * The parameters that are no tensors by their type or their default: a flag, a name, a count. Whoever traces the
 * function gives them as concrete arguments, and is told when it is not done.
 */
function plainParameters(node: FunctionSyntax): Set<string> {
  const names = new Set<string>();
  for (const param of node.params) {
    const target = param.type === "AssignmentPattern" ? param.left : param;
    if (target.type !== "Identifier") continue;
    const type = "typeAnnotation" in target ? annotation(target.typeAnnotation) : undefined;
    const given = param.type === "AssignmentPattern" ? bare(param.right) : undefined;
    const isLiteral = given?.type === "Literal" && given.raw !== "null";
    if (type === undefined ? isLiteral : isPlainType(type)) names.add(target.name);
  }
  return names;
}

/** A type of TypeScript, of which acorn knows nothing. */
interface TypeSyntax {
  readonly type: string;
  readonly types?: readonly TypeSyntax[];
}

function annotation(node: unknown): TypeSyntax | undefined {
  const inner = isType(node) && "typeAnnotation" in node ? node.typeAnnotation : undefined;
  return isType(inner) ? inner : undefined;
}

function isType(node: unknown): node is TypeSyntax {
  return typeof node === "object" && node !== null && "type" in node;
}

const PLAIN_TYPES = new Set([
  "TSBooleanKeyword",
  "TSNumberKeyword",
  "TSStringKeyword",
  "TSBigIntKeyword",
  "TSLiteralType",
]);

function isPlainType(type: TypeSyntax): boolean {
  if (type.type !== "TSUnionType") return PLAIN_TYPES.has(type.type);
  const parts = (type.types ?? []).filter((it) => it.type !== "TSNullKeyword" && it.type !== "TSUndefinedKeyword");
  return parts.length > 0 && parts.every(isPlainType);
}

export function* all(node: AnyNode): Generator<AnyNode> {
  yield node;
  for (const child of children(node)) yield* all(child);
}
