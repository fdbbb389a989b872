/**
 * What calls give: of functions that the walk has read, of JavaScript's own, of the module's methods, of others.
 *
 * @module
 */
import { isBundled } from "../../base/frames.ts";
import {
  ASSERTED_EQUAL,
  ASSERTIONS,
  type Call,
  type CallWalk,
  CHECKED,
  DECIDING,
  GLOBALS,
  KEYED_METHODS,
  KNOWN_ROOTS,
  METHODS,
  WITH_CALLBACK,
} from "./calls.ts";
import type { SourceLocation } from "acorn";
import { type CallPlace, Knowledge, joinSources } from "./knowledge.ts";
import { bare, type FunctionSyntax, isNullish, snippet, type Syntax } from "./syntax.ts";
import {
  ALWAYS,
  join,
  joinAll,
  type ContainerShape,
  isContainer,
  type PathShape,
  PLAIN,
  present,
  shaped,
  type Sources,
  tracedBy,
  type UnknownShape,
  type Value,
} from "./value.ts";

/** What JavaScript's own functions are members of. */
const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(["globalThis", "window", "self"]);

/** Calls that say what an object inherits from. */
const INHERITING: ReadonlySet<string> = new Set(["Object.create", "Object.setPrototypeOf", "Reflect.setPrototypeOf"]);

/** The methods by which a generator goes on. */
const RESUMING: ReadonlySet<string> = new Set(["next", "return", "throw"]);

const NOWHERE = { start: { line: 1, column: 0 }, end: { line: 1, column: 0 } };

/** A call of something of which nobody knows what it is. */
interface Called {
  /** What is called, or holds the method that is. */
  readonly callee: Value;
  /** The value that records the call where it is traced. */
  readonly on?: Value;
  /** The method of it. */
  readonly method?: string;
}

interface Unresolved extends Omit<Called, "callee" | "on"> {
  readonly callee: string;
  readonly args: readonly Value[];
  readonly on: Value;
  /** What the callee comes from. */
  readonly sources: Sources;
  readonly isNamed: boolean;
  readonly isPrototype?: boolean;
  /** How many functions may be called. */
  readonly callees: number;
}

type CallSyntax = Syntax & { type: "CallExpression" | "NewExpression" };

/** The part of a walk that follows calls. */
export abstract class Invocations extends Knowledge implements CallWalk {
  abstract writeInto(node: Syntax, object: Value, name: string | undefined, value: Value): void;

  apply(fn: Value, args: readonly Value[], node: Syntax): Value {
    const results = [tracedBy(fn.traced), this.invoke(present({ ...fn, traced: 0n }), args)];
    const callees = pathsIn(fn);
    for (const shape of fn.shapes) {
      if (shape.kind === "path" && shape.root === "free") results.push(this.callFree(node, shape.path, args, callees));
      else if (shape.kind === "unknown") results.push(this.callUnknown(node, shape, args, { callee: fn }));
      else if (shape.kind === "path" && shape.path.length > 0)
        results.push(this.callMember(node, shape.root === "super" ? "super" : "this", shape.path, args));
    }
    return joinAll(results);
  }

  predicate(callee: Value, args: readonly Value[], node: Syntax, construct: string): void {
    for (const shape of callee.shapes) {
      if (shape.kind === "path" && shape.root === "free" && shape.path.join(".") === "Boolean") {
        this.report("predicate", node, construct, args[0]?.traced ?? 0n);
        continue;
      }
      const result = this.apply(shaped(shape), args, node);
      if (shape.kind !== "function") this.report("predicate", node, construct, result.traced);
      else if (!shape.isPredicate) {
        shape.isPredicate = true;
        this.changes += 1;
      }
    }
  }

  protected callMethod(
    node: CallSyntax,
    receiver: Value,
    name: string | undefined,
    method: Value,
    args: readonly Value[],
  ): Value {
    const call = { node, receiver, args, walk: this };
    const checked = name === undefined ? undefined : CHECKED.get(name);
    if (checked !== undefined) return checked(call, name ?? "");
    for (const shape of method.shapes) if (shape.kind === "function") shape.self.add(receiver);
    const isKnownPart = name !== undefined && this.knownParts.has(name);
    const results = [tracedBy(isKnownPart ? 0n : receiver.traced), this.invoke(functionsOf(method), args)];
    // What a traced value has, or gives in an export, may be an array.
    if (receiver.traced !== 0n) results.push(this.overElements(call, tracedBy(receiver.traced), name));
    for (const shape of receiver.shapes) {
      if (shape.kind === "path") results.push(this.callPath(node, shape, name ?? "*", args, pathsIn(receiver)));
      else if (shape.kind === "unknown") {
        results.push(this.overElements(call, shaped(shape), name));
        results.push(this.callUnknown(node, shape, args, { callee: receiver, on: receiver, method: name ?? "*" }));
      } else if (shape.kind === "generator" && (name === undefined || RESUMING.has(name))) {
        results.push(this.resume(node, shape, name, args));
      } else if (shape.kind !== "function") {
        const held = { ...PLAIN, shapes: new Set([...method.shapes].filter(({ kind }) => kind !== "function")) };
        const row = (shape.kind === "keyed" ? KEYED_METHODS : METHODS).get(name ?? "");
        if (held.shapes.size > 0) results.push(this.apply(held, args, node));
        else if (row !== undefined) results.push(row({ ...call, receiver: shaped(shape) }, name ?? ""));
        else {
          // What an object inherits stands elsewhere.
          const isOwn = functionsOf(method).shapes.size > 0 || shape.kind !== "object" || name === undefined;
          const inherits = shape.isOpaque ? this.taint(shaped(shape)) : 0n;
          if (!isOwn && !(name in Object.prototype))
            this.unresolved(node, args, { callee: tracedBy(receiver.traced | inherits) });
          results.push(this.unknown(args), tracedBy(inherits));
        }
      } else if (name === "call" || name === "apply") {
        shape.self.add(args[0] ?? PLAIN);
        const given = name === "call" ? args.slice(1) : args.slice(1).map((it) => this.elements(it));
        results.push(this.invoke(shaped(shape), given));
      } else if (name === "bind") {
        shape.self.add(args[0] ?? PLAIN);
        results.push(shaped(shape));
      }
    }
    return joinAll(results);
  }

  protected callPath(node: CallSyntax, shape: PathShape, name: string, args: readonly Value[], callees: number): Value {
    const call = { node, receiver: shaped(shape), args, walk: this };
    const path = [...shape.path, name];
    const callback = args[0] !== undefined && [...args[0].shapes].some((it) => it.kind === "function");
    const isBoolean = shape.root !== "free" && name === "filter";
    if ((callback || isBoolean) && WITH_CALLBACK.has(name) && !isKnown(path))
      return METHODS.get(name)?.(call, name) ?? PLAIN;
    if (["includes", "indexOf", "lastIndexOf", "has"].includes(name))
      return METHODS.get("includes")?.(call, name) ?? PLAIN;
    if (name === "get" && args.length === 1) this.report("membership", node, name, args[0]?.traced ?? 0n);
    return shape.root === "free"
      ? this.callFree(node, path, args, callees)
      : this.callMember(node, shape.root, path, args);
  }

  /** Calls the functions that a method is given with the elements of what it is called on, if that is an array. */
  protected overElements({ node, args }: Call, receiver: Value, name: string | undefined): Value {
    const isCallback = args[0] !== undefined && [...args[0].shapes].some((it) => it.kind === "function");
    const row = isCallback && WITH_CALLBACK.has(name ?? "") ? METHODS.get(name ?? "") : undefined;
    return row?.({ node, receiver, args, walk: this }, name ?? "") ?? PLAIN;
  }

  /** A call of something outside of the function. */
  protected callFree(node: Syntax, given: readonly string[], args: readonly Value[], callees: number): Value {
    const path = GLOBAL_OBJECTS.has(given[0] ?? "") && given.length > 1 ? given.slice(1) : given;
    const name = path.join(".");
    const call = { node, receiver: PLAIN, args, walk: this };
    // Bundlers call a namespace what they like, and leave the names of its members.
    if (DECIDING.has(path.at(-1) ?? "")) return PLAIN;
    if (isKnown(path)) return this.unknown(args);
    // A minifier may give so short a name to anything; what is called by it is watched.
    if (ASSERTIONS.test(name) && !(isBundled && name === "ok")) {
      this.report("assertion", node, name, args[0]?.traced ?? 0n);
      return PLAIN;
    }
    if (ASSERTED_EQUAL.test(name)) {
      for (const it of args) this.report("comparison", node, name, it.traced);
      return PLAIN;
    }
    if (name === "eval" || name === "Function") this.report("eval", node, name, ALWAYS);
    if (INHERITING.has(name)) return this.callInheriting(node, name, args);
    const row = GLOBALS.get(name) ?? GLOBALS.get(`${path[0]}.*`);
    if (row !== undefined) return row(call, name);
    this.addUnchecked(node, { callee: name, args, on: PLAIN, sources: 0n, isNamed: true, callees });
    return this.gives(node, args);
  }

  /** Goes on with a generator. */
  protected resume(node: Syntax, shape: ContainerShape, name: string | undefined, args: readonly Value[]): Value {
    // A generator is its own iterator, under a symbol.
    if (name === undefined) return shaped(shape);
    shape.sent?.add(args[0] ?? PLAIN);
    const made = this.container("object", node);
    this.named(made, "value").add(join(shape.elements.value, args[0] ?? PLAIN));
    this.named(made, "done").add(PLAIN);
    return shaped(made);
  }

  /** A call that says what an object inherits from. */
  protected callInheriting(node: Syntax, name: string, args: readonly Value[]): Value {
    const isNew = name === "Object.create";
    const object = isNew ? shaped(this.container("object", node)) : (args[0] ?? PLAIN);
    const written = "arguments" in node ? node.arguments[isNew ? 0 : 1] : undefined;
    this.inherit(written ?? node, object, args[isNew ? 0 : 1] ?? PLAIN);
    // The properties are described by objects.
    if (isNew) for (const shape of object.shapes) if (isContainer(shape)) this.describe(shape, args[1] ?? PLAIN);
    const isMade = [...object.shapes].every((it) => isContainer(it)) && object.traced === 0n;
    if (!isMade) this.addUnchecked(node, { callee: name, args, on: PLAIN, sources: 0n, isNamed: true, callees: 1 });
    return name.startsWith("Reflect") ? PLAIN : object;
  }

  /** Puts into an object what descriptions of its properties say. */
  protected describe(made: ContainerShape, described: Value): void {
    for (const each of this.elements(described).shapes) {
      if (!isContainer(each)) continue;
      made.elements.add(each.named.get("value")?.value ?? PLAIN);
      const getter = each.named.get("get")?.value ?? PLAIN;
      for (const fn of getter.shapes) if (fn.kind === "function") fn.self.add(shaped(made));
      made.elements.add(this.invoke(getter, []));
    }
  }

  /** Has the objects that a value may be inherit from what another value may be, as the node says. */
  protected inherit(written: Syntax, object: Value, prototype: Value): void {
    for (const made of object.shapes) {
      if (!isContainer(made)) continue;
      for (const shape of prototype.shapes) {
        if (isContainer(shape)) {
          made.prototypes.add(shaped(shape));
          for (const cell of [...shape.named.values(), shape.elements, ...shape.setters.values()])
            for (const fn of cell.value.shapes) if (fn.kind === "function") fn.self.add(shaped(made));
          if (shape.isOpaque) this.setOpaque(made);
        } else if (shape.kind !== "path" || !isPrototypeOfJavaScript(shape.path)) {
          this.setOpaque(made);
          this.addUnchecked(written, {
            callee: snippet(this.text, bare(written)),
            args: [],
            on: PLAIN,
            sources: this.taint(object),
            isNamed: false,
            isPrototype: true,
            callees: 1,
          });
        }
      }
    }
  }

  protected setOpaque(made: ContainerShape): void {
    if (made.isOpaque) return;
    made.isOpaque = true;
    this.changes += 1;
  }

  /** What code gives that was not read: anything that it was given, and functions that call what it was given. */
  protected gives(node: Syntax, args: readonly Value[]): Value {
    const shape = this.opaque(node);
    for (const it of args) shape.holds.add(it);
    return join(shaped(shape), this.unknown(args));
  }

  /** A call of what opaque code gave, or of a method of it. */
  protected callUnknown(
    node: Syntax,
    shape: UnknownShape,
    args: readonly Value[],
    { callee, on, method }: Called,
  ): Value {
    this.unresolved(node, args, { callee, ...(on && { on }), ...(method !== undefined && { method }) });
    const given = tracedBy(joinSources(args, (it) => this.taint(it)) | callee.traced);
    for (const held of shape.holds.value.shapes) {
      if (held.kind === "function") this.invoke(shaped(held), parametersGiven(held.node, given));
    }
    return join(given, this.gives(node, args));
  }

  /** Notes a call of something of which nobody knows what it is. */
  protected unresolved(node: Syntax, args: readonly Value[], { callee, on = PLAIN, method }: Called): void {
    const what = calleeOf(node);
    if (what.type === "Super" || what.type === "FunctionExpression") return;
    this.addUnchecked(node, {
      callee: snippet(this.text, what),
      args,
      on,
      sources: callee.traced,
      isNamed: false,
      callees: 1,
      ...(method !== undefined && { method }),
    });
  }

  protected addUnchecked(node: Syntax, call: Unresolved): void {
    const { callee, args, on, sources: from, isNamed, isPrototype = false, method, callees } = call;
    const sources = from | joinSources(args, (it) => this.taint(it));
    if (!this.isReporting || sources === 0n) return;
    const { line, column } = node.loc?.start ?? NOWHERE.start;
    const place = this.placeOf(node, args, callees);
    const key = `${callee}:${method ?? ""}:${on.traced}${isPrototype ? ":prototype" : ""}`;
    const known = this.unchecked.get(key);
    if (known === undefined) {
      const at = { callee, line, column: column + 1, sources, places: [place], on: on.traced, isNamed, isPrototype };
      this.unchecked.set(key, method === undefined ? at : { ...at, method });
      return;
    }
    this.unchecked.set(key, { ...known, sources: known.sources | sources, places: [...known.places, place] });
  }

  protected placeOf(node: Syntax, args: readonly Value[], callees = 1): CallPlace {
    const { walked } = this;
    const { start: head } = (walked && (this.heads.get(walked) ?? walked).loc) ?? NOWHERE;
    const given = "arguments" in node ? node.arguments : [];
    const isWritten = "arguments" in node && given.every((it) => it.type !== "SpreadElement");
    const { start, end } = namedBy(node);
    return {
      line: start.line,
      column: start.column + 1,
      endLine: end.line,
      endColumn: end.column + 1,
      callees,
      inside: walked === this.root ? undefined : { line: head.line, column: head.column + 1 },
      args: isWritten && given.length === args.length ? args.map((it) => this.taint(it)) : undefined,
    };
  }

  known(name: string): Value {
    return shaped(this.path("free", ["tracefx", name]));
  }

  /** A call of a method of the module or of a part of it: whether its result is traced is known when tracing. */
  protected callMember(node: Syntax, root: "this" | "super", path: readonly string[], args: readonly Value[]): Value {
    const key = `${root}.${path.join(".")}`;
    const call = this.calls.get(key) ?? { root, path, args: [], nullable: [], places: [] };
    this.calls.set(key, call);
    if (this.isReporting) call.places.push(this.placeOf(node, args));
    args.forEach((it, index) => {
      call.args[index] = (call.args[index] ?? 0n) | this.taint(it);
      call.nullable[index] = (call.nullable[index] ?? 0n) | it.nullable;
    });
    this.callbacks(args);
    const source = this.sourceOf({ kind: "method", path: root === "super" ? ["super", ...path] : path });
    // A bound method is read where it is bound.
    return path.at(-1) === "bind" ? tracedBy(source) : join(tracedBy(source), shaped(this.opaque(node)));
  }

  /** A call of something of which nothing is known: it may give back what it is given, and call what it is given. */
  protected unknown(args: readonly Value[]): Value {
    return join(tracedBy(joinSources(args, (it) => this.taint(it))), this.callbacks(args));
  }

  protected callbacks(args: readonly Value[]): Value {
    const given = tracedBy(joinSources(args, (it) => this.taint(it)));
    return joinAll(
      args.flatMap((it) =>
        [...it.shapes].map((shape) =>
          shape.kind === "function" ? this.invoke(shaped(shape), parametersGiven(shape.node, given)) : PLAIN,
        ),
      ),
    );
  }
}

/** Whether this is a class of the language, or what its objects inherit from, which decides nothing. */
function isPrototypeOfJavaScript(path: readonly string[]): boolean {
  const [root = ""] = path;
  const isPrototype = path.length === 1 || (path.length === 2 && path[1] === "prototype");
  return isKnown(path) || (isPrototype && OF_JAVASCRIPT.has(root));
}

const OF_JAVASCRIPT: ReadonlySet<string> = new Set(["Object", "Array", "Map", "Set", "WeakMap", "WeakSet", "Error"]);

/** How many things from outside of the function a value may be. */
function pathsIn({ shapes }: Value): number {
  return [...shapes].filter(({ kind }) => kind === "path").length;
}

/** What is called. */
function calleeOf(node: Syntax): Syntax {
  if (node.type === "TaggedTemplateExpression") return bare(node.tag);
  return "callee" in node ? bare(node.callee) : node;
}

/** From where a call names what it calls to where its arguments begin: there V8 says that a call is. */
function namedBy(node: Syntax): SourceLocation {
  const loc = node.loc ?? NOWHERE;
  const first = "arguments" in node ? node.arguments[0]?.loc?.start : undefined;
  const { quasi } = node.type === "TaggedTemplateExpression" ? node : {};
  const tagged = quasi?.loc && { line: quasi.loc.start.line, column: quasi.loc.start.column + 1 };
  const end = tagged ?? first ?? loc.end;
  const callee = calleeOf(node);
  let { start } = loc;
  if (node.type === "NewExpression" || callee === node) start = loc.start;
  else if (callee.type === "MemberExpression") {
    start = (callee.computed ? callee.object.loc?.end : callee.property.loc?.start) ?? start;
  } else if (callee.type === "CallExpression" || callee.type === "NewExpression") start = callee.loc?.end ?? start;
  return { start, end };
}

/** What code that nobody has read gives to a function: anything, but where the function has a setting of its own. */
function parametersGiven({ params }: FunctionSyntax, given: Value): Value[] {
  return params.map((it) => {
    const setting = it.type === "AssignmentPattern" ? bare(it.right) : undefined;
    return setting?.type === "Literal" && !isNullish(setting) ? PLAIN : given;
  });
}

function functionsOf(value: Value): Value {
  return { ...PLAIN, shapes: new Set([...value.shapes].filter((shape) => shape.kind === "function")) };
}

/** Whether the path goes through tracefx, under the names that bundlers give to imports too. */
export function isKnown(path: readonly string[]): boolean {
  return path.slice(0, -1).some((name) => KNOWN_ROOTS.has(name)) || /tracefx/i.test(path[0] ?? "");
}
