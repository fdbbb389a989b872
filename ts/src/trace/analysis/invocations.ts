/**
 * What calls give: of functions that the walk has read, of JavaScript's own, of the module's methods, of others.
 *
 * @module
 */
import {
  ASSERTED_EQUAL,
  ASSERTIONS,
  type CallWalk,
  CHECKED,
  DECIDING,
  GLOBALS,
  KEYED_METHODS,
  KNOWN_ROOTS,
  METHODS,
  WITH_CALLBACK,
} from "./calls.ts";
import { Knowledge, joinSources } from "./knowledge.ts";
import type { Syntax } from "./syntax.ts";
import {
  ALWAYS,
  join,
  joinAll,
  type PathShape,
  PLAIN,
  present,
  shaped,
  type Sources,
  tracedBy,
  type Value,
} from "./value.ts";

/** What JavaScript's own functions are members of. */
const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(["globalThis", "window", "self"]);

const NOWHERE = { start: { line: 1, column: 0 } };

type CallSyntax = Syntax & { type: "CallExpression" | "NewExpression" };

/** The part of a walk that follows calls. */
export abstract class Invocations extends Knowledge implements CallWalk {
  apply(fn: Value, args: readonly Value[], node: Syntax): Value {
    const results = [tracedBy(fn.traced), this.invoke(present({ ...fn, traced: 0n }), args)];
    const callees = pathsIn(fn);
    for (const shape of fn.shapes) {
      if (shape.kind === "path" && shape.root === "free") results.push(this.callFree(node, shape.path, args, callees));
      else if (shape.kind === "path" && shape.path.length > 0)
        results.push(this.callMember(shape.root === "super" ? "super" : "this", shape.path, args));
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
    for (const shape of receiver.shapes) {
      if (shape.kind === "path") results.push(this.callPath(node, shape, name ?? "*", args, pathsIn(receiver)));
      else if (shape.kind !== "function") {
        const row = (shape.kind === "keyed" ? KEYED_METHODS : METHODS).get(name ?? "");
        results.push(row === undefined ? this.unknown(args) : row({ ...call, receiver: shaped(shape) }, name ?? ""));
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
    return shape.root === "free" ? this.callFree(node, path, args, callees) : this.callMember(shape.root, path, args);
  }

  /** A call of something outside of the function. */
  protected callFree(node: Syntax, given: readonly string[], args: readonly Value[], callees: number): Value {
    const path = GLOBAL_OBJECTS.has(given[0] ?? "") && given.length > 1 ? given.slice(1) : given;
    const name = path.join(".");
    const call = { node, receiver: PLAIN, args, walk: this };
    // Bundlers call a namespace what they like, and leave the names of its members.
    if (DECIDING.has(path.at(-1) ?? "")) return PLAIN;
    if (isKnown(path)) return this.unknown(args);
    if (ASSERTIONS.test(name)) {
      this.report("assertion", node, name, args[0]?.traced ?? 0n);
      return PLAIN;
    }
    if (ASSERTED_EQUAL.test(name)) {
      for (const it of args) this.report("comparison", node, name, it.traced);
      return PLAIN;
    }
    if (name === "eval" || name === "Function") this.report("eval", node, name, ALWAYS);
    const row = GLOBALS.get(name) ?? GLOBALS.get(`${path[0]}.*`);
    if (row !== undefined) return row(call, name);
    const sources = joinSources(args, (it) => this.taint(it));
    if (this.isReporting && sources !== 0n) this.addUnchecked(node, name, sources, callees);
    return this.unknown(args);
  }

  protected addUnchecked(node: Syntax, callee: string, sources: Sources, callees: number): void {
    const { start } = node.loc ?? NOWHERE;
    const { start: end } = ("arguments" in node ? node.arguments[0]?.loc : undefined) ?? node.loc ?? NOWHERE;
    const { walked } = this;
    const { start: head } = (walked && (this.heads.get(walked) ?? walked).loc) ?? NOWHERE;
    const inside = walked === this.root ? undefined : { line: head.line, column: head.column + 1 };
    const [from, to] = [
      { line: start.line, column: start.column + 1 },
      { endLine: end.line, endColumn: end.column + 1 },
    ];
    const place = { ...from, ...to, inside, callees };
    const known = this.unchecked.get(callee);
    if (known !== undefined) known.places.push(place);
    else this.unchecked.set(callee, { callee, ...from, sources, places: [place] });
  }

  /** A call of a method of the module or of a part of it: whether its result is traced is known when tracing. */
  protected callMember(root: "this" | "super", path: readonly string[], args: readonly Value[]): Value {
    const key = `${root}.${path.join(".")}`;
    const call = this.calls.get(key) ?? { root, path, args: [], nullable: [] };
    this.calls.set(key, call);
    args.forEach((it, index) => {
      call.args[index] = (call.args[index] ?? 0n) | this.taint(it);
      call.nullable[index] = (call.nullable[index] ?? 0n) | it.nullable;
    });
    this.callbacks(args);
    const source = this.sourceOf({ kind: "method", path: root === "super" ? ["super", ...path] : path });
    return tracedBy(source);
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
          shape.kind === "function"
            ? this.invoke(
                shaped(shape),
                shape.node.params.map(() => given),
              )
            : PLAIN,
        ),
      ),
    );
  }
}

/** How many things from outside of the function a value may be. */
function pathsIn({ shapes }: Value): number {
  return [...shapes].filter(({ kind }) => kind === "path").length;
}

function functionsOf(value: Value): Value {
  return { ...PLAIN, shapes: new Set([...value.shapes].filter((shape) => shape.kind === "function")) };
}

/** Whether the path goes through tracefx, under the names that bundlers give to imports too. */
export function isKnown(path: readonly string[]): boolean {
  return path.slice(0, -1).some((name) => KNOWN_ROOTS.has(name)) || /tracefx/i.test(path[0] ?? "");
}
