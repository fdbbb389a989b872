/**
 * What a walk has found out: the variables, containers and functions that it met, and what it reports.
 *
 * @module
 */
import type { Finding, FindingKind } from "./findings.ts";
import { Scope } from "./scope.ts";
import { extent, type FunctionSyntax, snippet, type Syntax } from "./syntax.ts";
import {
  Cell,
  type Clock,
  type ContainerShape,
  contents,
  type FunctionShape,
  join,
  joinAll,
  type PathShape,
  PLAIN,
  type Shape,
  shaped,
  type Source,
  type Sources,
  tracedBy,
  type UnknownShape,
  type Value,
} from "./value.ts";
/** A call of a method of the module, or of a part of it. */
export interface MethodCall {
  readonly root: "this" | "super";
  /** The names from the module to the method; `*` stands for any element. */
  readonly path: readonly string[];
  /** What the arguments come from, by position. */
  readonly args: Sources[];
  /** Which of them are given as they are, so that they are null where those are. */
  readonly nullable: Sources[];
  /** All calls of it. */
  readonly places: CallPlace[];
}

/** A call of a function whose source the analysis cannot see, with a traced argument. */
export interface UncheckedCall {
  /** The function, as it is called in the source. */
  readonly callee: string;
  readonly line: number;
  readonly column: number;
  readonly sources: Sources;
  /** All calls of it: from where they begin to where their arguments do. */
  readonly places: readonly CallPlace[];
  /** What it is called on, or what is called: where that is traced, the call is recorded. */
  readonly on: Sources;
  /** The method of what it is called on. */
  readonly method?: string;
  /** Whether it is called by a name that is declared outside, so that it is the same function each time. */
  readonly isNamed: boolean;
  /** Whether it is no call, and an object with traced values inherits from what is named. */
  readonly isPrototype?: boolean;
}

/** Where a call names what it calls. */
export interface CallPlace {
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  /** How many functions may be called there. */
  readonly callees: number;
  /** Where the function begins that it stands in, if that is one that is written in the function. */
  readonly inside: { readonly line: number; readonly column: number } | undefined;
  /** What its arguments come from, by position; undefined where not all of them are written out. */
  readonly args: readonly Sources[] | undefined;
}

/** How deep a path into the module is followed. */
const DEPTH = 4;

/** The knowledge of one walk. */
export abstract class Knowledge implements Clock {
  changes = 0;
  readonly findings = new Map<string, Finding>();
  readonly unchecked = new Map<string, UncheckedCall>();
  readonly calls = new Map<string, MethodCall>();
  readonly sources: Source[] = [];
  /** The members of the module that are read. */
  readonly reads = new Set<string>();
  /** The function that is analysed. */
  root: FunctionSyntax | undefined;
  readonly #bits = new Map<string, Sources>();
  /** The objects whose prototypes are being looked at, which may be a ring. */
  readonly #inheriting = new Set<Shape>();
  protected readonly text: string;
  /** The members of traced values that are known: what they give is plain. */
  protected readonly knownParts: ReadonlySet<string>;
  protected readonly scopes = new Map<Syntax, Scope>();
  protected readonly functions = new Map<Syntax, FunctionShape>();
  protected readonly containers = new Map<string, ContainerShape>();
  protected readonly paths = new Map<string, PathShape>();
  protected readonly unknowns = new Map<string, UnknownShape>();
  protected readonly written = new Map<string, Cell>();
  /** Where the text of a method begins: before its parameters, where its syntax does. */
  protected readonly heads = new Map<Syntax, Syntax>();
  /** The function that is walked. */
  protected walked: FunctionSyntax | undefined;
  protected isReporting = false;
  /** All sources that were met since the innermost `try` began. */
  protected met: Sources = 0n;

  constructor(source: string, knownParts: ReadonlySet<string> = new Set()) {
    this.text = source;
    this.knownParts = knownParts;
  }

  /** The sources with a source for it, which is made if need be. */
  sourceOf(source: Source): Sources {
    const key = `${source.kind} ${source.kind === "parameter" ? source.name : source.path.join(".")}`;
    const known = this.#bits.get(key);
    if (known !== undefined) return known;
    const bit = 1n << BigInt(this.sources.length);
    this.#bits.set(key, bit);
    this.sources.push(source);
    this.changes += 1;
    return bit;
  }

  /** The function that a node writes, as a value that is walked from now on. */
  functionOf(node: FunctionSyntax, outer: Scope): FunctionShape {
    const known = this.functions.get(node);
    if (known !== undefined) return known;
    const given = node.params.map(() => new Cell(this));
    const shape: FunctionShape = {
      kind: "function",
      node,
      outer,
      returns: new Cell(this),
      sent: new Cell(this),
      self: new Cell(this),
      given,
      extra: new Cell(this),
      isPredicate: false,
      isCalled: false,
    };
    this.functions.set(node, shape);
    this.changes += 1;
    return shape;
  }

  /** A part of the module, or of what is outside of the function. */
  path(root: PathShape["root"], path: readonly string[]): PathShape {
    const cut = path.length > DEPTH ? [...path.slice(0, DEPTH), "*"] : path;
    const key = `${root}.${cut.join(".")}`;
    const known = this.paths.get(key);
    if (known !== undefined) return known;
    const shape: PathShape = { kind: "path", root, path: cut };
    this.paths.set(key, shape);
    return shape;
  }

  report(kind: FindingKind, node: Syntax, construct: string, sources: Sources): void {
    if (!this.isReporting || sources === 0n) return;
    const [start] = extent(node);
    const key = `${start}:${kind}:${construct}`;
    const known = this.findings.get(key);
    const { start: from, end: to } = node.loc ?? { start: { line: 1, column: 0 }, end: { line: 1, column: 0 } };
    this.findings.set(key, {
      kind,
      construct,
      snippet: snippet(this.text, node),
      line: from.line,
      column: from.column + 1,
      endLine: to.line,
      endColumn: to.column + 1,
      sources: sources | (known?.sources ?? 0n),
    });
  }

  /** Reports that something asks whether a value is null. */
  protected asksNull(node: Syntax, construct: string, value: Value): void {
    this.report("nullish", node, construct, value.nullable);
    this.report("absent", node, construct, value.attributes & ~value.nullable);
  }

  taint(value: Value, seen: Set<Shape> = new Set()): Sources {
    let sources = value.traced;
    for (const shape of value.shapes) {
      if (shape.kind === "function" || shape.kind === "unknown" || seen.has(shape)) continue;
      seen.add(shape);
      if (shape.kind !== "path") sources |= this.taint(contents(shape), seen);
      else if (shape.root === "this" && shape.path.length > 0)
        sources |= this.sourceOf({ kind: "member", path: shape.path });
    }
    return sources;
  }

  elements(value: Value): Value {
    return joinAll([
      tracedBy(value.traced),
      ...[...value.shapes].map((shape) => {
        if (shape.kind === "path") return this.member(shape, "*");
        if (shape.kind === "unknown") return shaped(shape);
        return shape.kind === "function" ? PLAIN : contents(shape);
      }),
    ]);
  }

  container(kind: ContainerShape["kind"], node: Syntax): ContainerShape {
    const key = `${kind}:${extent(node).join(":")}`;
    const known = this.containers.get(key);
    if (known !== undefined) return known;
    const shape: ContainerShape = {
      kind,
      named: new Map(),
      elements: new Cell(this),
      setters: new Map(),
      prototypes: new Cell(this),
      isOpaque: false,
      sent: undefined,
    };
    this.containers.set(key, shape);
    return shape;
  }

  /** What code that was not read gives at a node. */
  protected opaque(node: Syntax): UnknownShape {
    const key = extent(node).join(":");
    const known = this.unknowns.get(key);
    if (known !== undefined) return known;
    const shape: UnknownShape = { kind: "unknown", holds: new Cell(this) };
    this.unknowns.set(key, shape);
    return shape;
  }

  invoke(callee: Value, args: readonly Value[]): Value {
    let result = PLAIN;
    for (const shape of callee.shapes) {
      if (shape.kind !== "function") continue;
      shape.isCalled = true;
      const rest = shape.node.params.at(-1);
      const named = rest?.type === "RestElement" ? shape.given.length - 1 : shape.given.length;
      args.forEach((value, index) => {
        if (index < named) shape.given[index]?.add(value);
        else if (rest?.type !== "RestElement") shape.extra.add(value);
        else {
          const all = this.container("array", rest);
          all.elements.add(value);
          shape.given[named]?.add(shaped(all));
        }
      });
      result = join(result, shape.node.generator ? shaped(this.generatorOf(shape)) : shape.returns.value);
    }
    return result;
  }

  /** What a call of a generator gives: all calls of one give the same. */
  protected generatorOf({ node, returns, sent }: FunctionShape): ContainerShape {
    const made = this.container("generator", node);
    made.elements.add(returns.value);
    made.sent = sent;
    return made;
  }

  /** The sources of a value whose identity is looked at: itself, and if it is a member of the module. */
  identity(value: Value): Sources {
    let sources = value.traced;
    for (const shape of value.shapes) if (shape.kind === "path") sources |= this.taint(shaped(shape));
    return sources;
  }

  /**
   * The sources of a value whose truth is asked, as a part of a member: a parameter of the module is there or not,
   * which is known when tracing; what stands in it is traced.
   */
  partsOf(value: Value): Sources {
    let sources = 0n;
    for (const shape of value.shapes)
      if (shape.kind === "path" && shape.root === "this" && shape.path.length > 0)
        sources |= this.sourceOf({ kind: "part", path: shape.path });
    return sources;
  }

  /** What stands in a value under a name, or under one that is computed. */
  protected part(object: Value, name: string | undefined, node: Syntax): Value {
    if (name === "length" && object.traced !== 0n) this.report("size", node, "length", object.traced);
    const isIndex = name === undefined || /^\d+$/.test(name);
    const parts = [...object.shapes].map((shape): Value => {
      if (shape.kind === "path") return this.member(shape, name ?? "*");
      if (shape.kind === "unknown") return shaped(shape);
      if (shape.kind === "function") return PLAIN;
      if (name === undefined) return join(contents(shape), this.inherited(shape, name, node));
      if (shape.kind === "arguments" && name === "length")
        this.report("arguments", node, "arguments", contents(shape).traced);
      const inherited = this.inherited(shape, name, node);
      if (shape.kind !== "object" && !isIndex) return inherited;
      return joinAll([shape.named.get(name)?.value ?? PLAIN, shape.elements.value, inherited]);
    });
    const isKnown = name === "length" || (name !== undefined && this.knownParts.has(name));
    const whole = tracedBy(isKnown ? 0n : object.traced);
    const traced = isIndex ? whole : { ...whole, attributes: whole.traced };
    return joinAll([traced, ...parts]);
  }

  /** What an object has under a name by what it inherits from. */
  protected inherited(shape: ContainerShape, name: string | undefined, node: Syntax): Value {
    if (name !== undefined && shape.named.has(name) && shape.kind === "object") return PLAIN;
    let known = PLAIN;
    if (shape.prototypes.value !== PLAIN && !this.#inheriting.has(shape)) {
      this.#inheriting.add(shape);
      known = this.part(shape.prototypes.value, name, node);
      this.#inheriting.delete(shape);
    }
    if (!shape.isOpaque) return known;
    return joinAll([known, tracedBy(this.taint(shaped(shape))), shaped(this.opaque(node))]);
  }

  protected member(shape: PathShape, name: string): Value {
    if (shape.root === "this" && shape.path.length === 0) this.reads.add(name);
    const inner = this.path(shape.root, [...shape.path, name]);
    const written = this.written.get(inner.path.join("."));
    return written === undefined || shape.root !== "this" ? shaped(inner) : join(shaped(inner), written.value);
  }

  protected named(shape: ContainerShape, name: string): Cell {
    const known = shape.named.get(name);
    if (known !== undefined) return known;
    const cell = new Cell(this);
    shape.named.set(name, cell);
    return cell;
  }

  /** Puts a function where it takes what is assigned to a name. */
  protected addSetter(shape: ContainerShape, name: string, fn: Value): void {
    const cell = shape.setters.get(name) ?? new Cell(this);
    shape.setters.set(name, cell);
    cell.add(fn);
    for (const it of fn.shapes) if (it.kind === "function") it.self.add(shaped(shape));
  }

  protected scopeOf(node: Syntax, outer: Scope): Scope {
    const known = this.scopes.get(node);
    if (known !== undefined) return known;
    const scope = new Scope(this, outer);
    this.scopes.set(node, scope);
    return scope;
  }
}

/** The sources of all items. */
export function joinSources<T>(items: readonly T[], sources: (item: T) => Sources): Sources {
  let joined = 0n;
  for (const item of items) joined |= sources(item);
  return joined;
}
