/**
 * What calls of JavaScript's own functions and methods do with traced values.
 *
 * The rows are grouped by what a call asks: a truth, an identity, the keys, the elements. A call that has no row is a
 * call of something unknown, whose result is traced if something that it was given is.
 *
 * @module
 */
import type { FindingKind } from "./findings.ts";
import type { Syntax } from "./syntax.ts";
import {
  ALWAYS,
  type ContainerShape,
  contents,
  join,
  joinAll,
  PLAIN,
  present,
  isContainer,
  shaped,
  type Sources,
  tracedBy,
  type Value,
} from "./value.ts";

/** A call, with what is known of its parts. */
export interface Call {
  readonly node: Syntax;
  /** What the method is called on; plain for a function. */
  readonly receiver: Value;
  /** The arguments; a spread one stands for its elements. */
  readonly args: readonly Value[];
  readonly walk: CallWalk;
}

/** What the rows need of the walk. */
export interface CallWalk {
  /** Reports a finding at the call, if the sources are not empty. */
  report(kind: FindingKind, node: Syntax, construct: string, sources: Sources): void;
  /** The sources of a value and of all that it holds. */
  taint(value: Value): Sources;
  /** The sources of a value whose identity is looked at. */
  identity(value: Value): Sources;
  /** The sources of a value whose truth is asked, as a part of a member. */
  partsOf(value: Value): Sources;
  /** The elements of something that is walked over. */
  elements(value: Value): Value;
  /** Calls what a value may be, as the call at the node does. */
  apply(callee: Value, args: readonly Value[], node: Syntax): Value;
  /** Makes the functions that a value may be predicates, and says what they give. */
  predicate(callee: Value, args: readonly Value[], node: Syntax, construct: string): void;
  /** Puts a value under a name into what a value may be, as the node does. */
  writeInto(node: Syntax, object: Value, name: string | undefined, value: Value): void;
  /** A function that records what it is given, or looks at it. */
  known(name: string): Value;
  /** The container that the node makes. */
  container(kind: ContainerShape["kind"], node: Syntax): ContainerShape;
}

type Row = (call: Call, name: string) => Value;

const arg = (call: Call, index: number): Value => call.args[index] ?? PLAIN;

/** A row for calls that ask about the traced value itself, and give something plain. */
function asks(kind: FindingKind): Row {
  return (call, name) => {
    for (const it of call.args) {
      const sources = kind === "test" ? it.traced | call.walk.partsOf(it) : call.walk.identity(it);
      call.walk.report(kind, call.node, name, sources);
    }
    return PLAIN;
  };
}

/** A row for calls that look for an argument among the elements of the receiver. */
const seeks: Row = (call, name) => {
  const held = arraysOf(call.receiver).map(contents);
  const sources = call.walk.taint(arg(call, 0)) | joinAll(held).traced;
  call.walk.report("membership", call.node, name, sources);
  return PLAIN;
};

/** A row for calls that give a new array of the receiver's elements, and of the arguments' ones. */
const gathers: Row = (call) => {
  const made = call.walk.container("array", call.node);
  made.elements.add(call.walk.elements(call.receiver));
  for (const it of call.args) made.elements.add(arraysOf(it).length > 0 ? call.walk.elements(it) : it);
  return shaped(made);
};

/** A row for calls that put the arguments into the receiver. */
const puts: Row = (call) => {
  for (const shape of arraysOf(call.receiver)) for (const it of call.args) shape.elements.add(it);
  return call.receiver;
};

const takes: Row = (call) => call.walk.elements(call.receiver);

const visits: Row = (call) => {
  const made = call.walk.container("array", call.node);
  made.elements.add(
    call.walk.apply(arg(call, 0), [call.walk.elements(call.receiver), PLAIN, call.receiver], call.node),
  );
  return shaped(made);
};

/** A row for calls that keep, find or count elements by a predicate. */
function selects(result: Row): Row {
  return (call, name) => {
    call.walk.predicate(arg(call, 0), [call.walk.elements(call.receiver), PLAIN, call.receiver], call.node, name);
    return result({ ...call, args: [] }, name);
  };
}

const plain: Row = () => PLAIN;

/** A row for calls of which is told that they give something else each time. */
function notes(kind: FindingKind): Row {
  return (call, name) => {
    call.walk.report(kind, call.node, name, ALWAYS);
    return PLAIN;
  };
}

/** A call that makes something of its arguments, if they are no traced values. */
const unasked = (call: Call): Value => tracedBy(joinAll(call.args).traced);

/** A row for calls that put the elements in order by a function that compares two of them. */
const orders: Row = (call, name) => {
  const element = call.walk.elements(call.receiver);
  call.walk.apply(arg(call, 0), [element, element], call.node);
  return gathers({ ...call, args: [] }, name);
};

const reduces: Row = (call) => {
  const [callback, initial] = [arg(call, 0), arg(call, 1)];
  const element = call.walk.elements(call.receiver);
  const start = call.args.length > 1 ? initial : element;
  const once = join(start, call.walk.apply(callback, [start, element, PLAIN, call.receiver], call.node));
  return join(once, call.walk.apply(callback, [once, element, PLAIN, call.receiver], call.node));
};

const pairs: Row = (call) => {
  const [outer, pair] = [call.walk.container("array", call.node), call.walk.container("object", call.node)];
  pair.elements.add(call.walk.elements(call.receiver));
  outer.elements.add(shaped(pair));
  return shaped(outer);
};

/** Methods of arrays, maps and sets, by name. */
export const METHODS: ReadonlyMap<string, Row> = new Map<string, Row>([
  ...rows(["indexOf", "lastIndexOf", "includes"], seeks),
  ...rows(["filter"], selects(gathers)),
  ...rows(["find", "findLast"], selects(takes)),
  ...rows(["findIndex", "findLastIndex", "some", "every"], selects(plain)),
  ...rows(["map", "flatMap", "forEach"], visits),
  ...rows(["reduce", "reduceRight"], reduces),
  ...rows(["push", "unshift", "fill", "splice"], puts),
  ...rows(["pop", "shift", "at"], takes),
  ...rows(["slice", "concat", "reverse", "toReversed", "flat", "values", "with"], gathers),
  ...rows(["sort", "toSorted"], orders),
  ...rows(["entries"], pairs),
  ...rows(["keys"], plain),
  ["join", (call, name) => text(call, name, call.walk.elements(call.receiver))],
]);

/** Methods of maps and sets, by name. */
export const KEYED_METHODS: ReadonlyMap<string, Row> = new Map<string, Row>([
  [
    "set",
    (call, name) => {
      call.walk.report("membership", call.node, name, call.walk.taint(arg(call, 0)));
      for (const shape of arraysOf(call.receiver)) shape.elements.add(arg(call, 1));
      return call.receiver;
    },
  ],
  [
    "add",
    (call, name) => {
      call.walk.report("membership", call.node, name, call.walk.taint(arg(call, 0)));
      return puts(call, name);
    },
  ],
  ...rows(["has", "delete"], (call, name) => {
    call.walk.report("membership", call.node, name, call.walk.taint(arg(call, 0)));
    return PLAIN;
  }),
  [
    "get",
    (call, name) => {
      call.walk.report("membership", call.node, name, call.walk.taint(arg(call, 0)));
      return call.walk.elements(call.receiver);
    },
  ],
  ...rows(["forEach"], visits),
  ...rows(["values"], gathers),
  ...rows(["entries"], pairs),
  ...rows(["keys", "clear"], plain),
]);

/** The methods that call their first argument with the elements of what they are called on. */
export const WITH_CALLBACK: ReadonlySet<string> = new Set([
  "filter",
  "find",
  "findLast",
  "findIndex",
  "findLastIndex",
  "some",
  "every",
  "map",
  "flatMap",
  "forEach",
  "reduce",
  "reduceRight",
]);

/** JavaScript's own functions, by the names that they are called by. */
export const GLOBALS: ReadonlyMap<string, Row> = new Map<string, Row>([
  ["Boolean", asks("test")],
  ["Object.is", asks("comparison")],
  ["Array.isArray", asks("instanceof")],
  ...rows(["Number.isNaN", "Number.isInteger", "Number.isFinite", "Number.isSafeInteger"], asks("number")),
  ...rows(["Object.keys", "Object.getOwnPropertyNames", "Reflect.ownKeys", "Reflect.has"], asks("keys")),
  ...rows(
    ["Object.hasOwn", "Object.getPrototypeOf", "Object.getOwnPropertyDescriptor", "Object.isFrozen"],
    asks("own"),
  ),
  ...rows(["Object.values"], (call) => listed(call, gathers)),
  ...rows(["Object.entries"], (call) => listed(call, pairs)),
  [
    "Object.fromEntries",
    (call, name) => {
      for (const it of call.args) call.walk.report("keys", call.node, name, it.traced);
      const made = call.walk.container("object", call.node);
      for (const it of call.args) for (const shape of arraysOf(it)) made.elements.add(deep(shape));
      return join(arg(call, 0), shaped(made));
    },
  ],
  [
    "Object.assign",
    (call, name) => {
      for (const it of call.args) call.walk.report("keys", call.node, name, it.traced);
      const target = arg(call, 0);
      for (const it of call.args.slice(1)) {
        for (const shape of arraysOf(it)) {
          call.walk.writeInto(call.node, target, undefined, shape.elements.value);
          for (const [key, cell] of shape.named) call.walk.writeInto(call.node, target, key, cell.value);
        }
      }
      return target;
    },
  ],
  ...rows(["Object.freeze", "Object.seal", "Object.preventExtensions"], (call) => arg(call, 0)),
  ...rows(["JSON.stringify", "structuredClone"], (call, name) => {
    call.walk.report("serialise", call.node, name, call.walk.taint(arg(call, 0)));
    return PLAIN;
  }),
  ...rows(
    ["Number", "BigInt", "parseInt", "parseFloat", "isNaN", "isFinite", "Number.parseInt", "Symbol"],
    asks("string"),
  ),
  ...rows(["Number.parseFloat", "Math.*"], asks("string")),
  ["String", (call, name) => text(call, name, arg(call, 0))],
  ["Array.of", gathers],
  [
    "Array.from",
    (call, name) => {
      call.walk.report("iteration", call.node, name, arg(call, 0).traced);
      const made = call.walk.container("array", call.node);
      const elements = call.walk.elements(arg(call, 0));
      made.elements.add(call.args.length > 1 ? call.walk.apply(arg(call, 1), [elements, PLAIN], call.node) : elements);
      return shaped(made);
    },
  ],
  [
    "Array",
    (call, name) => {
      if (call.args.length === 1) call.walk.report("length", call.node, name, arg(call, 0).traced);
      return gathers(call, name);
    },
  ],
  ...rows(["Map", "WeakMap"], (call, name) => keyed(call, name, true)),
  ...rows(["Set", "WeakSet"], (call, name) => keyed(call, name, false)),
  ...rows(["Promise.resolve"], (call) => arg(call, 0)),
  ...rows(["Promise.all", "Promise.allSettled", "Promise.race"], gathers),
  ...rows(["console.*", "Symbol.for"], plain),
  ...rows(["Error", "TypeError", "RangeError", "TraceError", "FxError"], plain),
  ...rows(
    [
      "Math.random",
      "crypto.getRandomValues",
      "crypto.randomBytes",
      "crypto.randomInt",
      "crypto.randomUUID",
      "randomBytes",
      "randomInt",
      "randomUUID",
    ],
    notes("random"),
  ),
  ...rows(["Date.now", "performance.now", "process.hrtime", "process.hrtime.bigint", "process.uptime"], notes("clock")),
  [
    "Date",
    (call, name) => {
      // A date of a given time is the same whenever it is made.
      if (call.node.type === "CallExpression" || call.args.length === 0) return notes("clock")(call, name);
      return unasked(call);
    },
  ],
]);

/**
 * The calls that the build plugin writes, by the names of the methods: what they are given was checked, or is when the
 * call is made. Their names survive bundlers and minifiers, which rename variables and not members.
 */
export const CHECKED: ReadonlyMap<string, Row> = new Map<string, Row>([
  ["$test", (call) => ({ ...PLAIN, shapes: arg(call, 0).shapes })],
  ["$plain", (call) => ({ ...PLAIN, shapes: arg(call, 0).shapes })],
  ["$present", (call) => present(arg(call, 0))],
  ["$switch", (call) => ({ ...PLAIN, shapes: arg(call, 0).shapes })],
  ["$holder", (call) => arg(call, 0)],
  ["$keys", (call) => arg(call, 0)],
  ...rows(["$compare", "$is"], plain),
  ["$predicate", plain],
  // What it gives is called at once, with arguments that it looks at.
  ["$method", (call) => join(tracedBy(call.walk.taint(arg(call, 0))), call.walk.known("$method"))],
  ...rows(["$operator", "$unary"], (call) => tracedBy(joinAll(call.args).traced)),
]);

/** Functions that throw when their first argument is not true. */
export const ASSERTIONS = /^(console\.assert|assert|assert\.ok|invariant|ok|nodeAssert)$/;

/** Functions that throw when their arguments are not, or are, the same. */
export const ASSERTED_EQUAL = /^assert\.(not)?(strict|deep|deepStrict)?[eE]qual$/;

/** Functions of tracefx that give a plain value for a traced one, or refuse it. */
export const DECIDING: ReadonlySet<string> = new Set([
  "guard",
  "guardBool",
  "guardFloat",
  "guardInt",
  "guardOrFalse",
  "guardOrTrue",
  "guardScalar",
  "guardingHintOrThrow",
  "expectTrue",
  "hasGuardingHint",
  "hasStaticValue",
  "isConcreteBool",
  "isConcreteFloat",
  "optimizationHint",
  "staticallyKnownFalse",
  "staticallyKnownTrue",
]);

/** Names by which tracefx and its parts are known: their functions are recorded, or take plain values. */
export const KNOWN_ROOTS: ReadonlySet<string> = new Set([
  "torch",
  "F",
  "nn",
  "fx",
  "operator",
  "math",
  "functional",
  "tracefx",
]);

function rows(names: readonly string[], row: Row): [string, Row][] {
  return names.map((name) => [name, row]);
}

function listed(call: Call, row: Row): Value {
  const it = arg(call, 0);
  call.walk.report("keys", call.node, "Object", it.traced);
  const held = call.walk.container("object", call.node);
  for (const shape of arraysOf(it)) held.elements.add(contents(shape));
  return row({ ...call, receiver: shaped(held), args: [] }, "values");
}

function keyed(call: Call, name: string, isMap: boolean): Value {
  const made = call.walk.container("keyed", call.node);
  const elements = call.walk.elements(arg(call, 0));
  const keys = isMap ? joinAll(arraysOf(elements).map((pair) => pair.named.get("0")?.value ?? PLAIN)) : elements;
  call.walk.report("membership", call.node, name, keys.traced);
  made.elements.add(isMap ? joinAll(arraysOf(elements).map((pair) => contents(pair))) : elements);
  return shaped(made);
}

/** The text of a traced value is refused while tracing; if it were not, the text would be a traced value's too. */
function text(call: Call, name: string, value: Value): Value {
  const sources = call.walk.taint(value);
  call.walk.report("string", call.node, name, sources);
  return tracedBy(sources);
}

/** The contents of a container, and of the containers in it. */
function deep(shape: ContainerShape): Value {
  const held = contents(shape);
  return joinAll([held, ...arraysOf(held).map((inner) => contents(inner))]);
}

function arraysOf(value: Value): ContainerShape[] {
  return [...value.shapes].filter((shape) => isContainer(shape));
}
