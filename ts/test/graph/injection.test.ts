import { createContext, runInContext } from "node:vm";
import { type Comment, type Node as AstNode, parse } from "acorn";
import { describe, expect, test } from "vitest";
import { formatReadable } from "../../src/graph/readable.ts";
import { Graph } from "../../src/graph/graph.ts";
import type { Node } from "../../src/graph/node.ts";
import type { Opcode } from "../../src/base/opcode.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { SymExpr, TensorMeta } from "../../src/graph/val.ts";
import { DeviceArg, LayoutArg, op } from "../../src/base/values.ts";
import { Random } from "./random.ts";

/** What ends strings, comments, scripts and lines, what JavaScript does by itself, and what it keeps for itself. */
const PIECES = [
  ..."\"'`\\/*{}()[];,.=<>!?:+-#@$&|%~^ \n\r\t\0\u2028\u2029\u0085\u00a0\u202e\u2066\u200b\ufeff\ud800\udfff\u{1f600}",
  ..."${ */ /* // <!-- --> </script> <script> \\u0022 \\x27 \\u{22} `; '); \"); )}} ]}; =>".split(" "),
  ..."__proto__ constructor prototype __defineGetter__ hasOwnProperty toString valueOf then arguments caller".split(
    " ",
  ),
  ..."eval Function globalThis process require import this super new delete typeof void yield await async let".split(
    " ",
  ),
  ..."var const class return if else for while do switch case default break continue throw try catch finally".split(
    " ",
  ),
  ..."with debugger enum export extends in instanceof null true false undefined NaN Infinity use strict".split(" "),
  ..."torch F operator builtins math tuple slice float dtype $inSpec sourceMappingURL= pwned() a b_1 0 1e9".split(" "),
];

/** Whole attacks, which random pieces would seldom make. */
const ATTACKS = [
  '"; globalThis.pwned = true; //',
  "'); globalThis.pwned = true; ('",
  "*/ globalThis.pwned = true; /*",
  "${globalThis.pwned = true}",
  "`${globalThis.pwned = true}`",
  "\u2028globalThis.pwned = true;",
  "\nglobalThis.pwned = true;\n",
  "\\u0022; globalThis.pwned = true; //",
  "x = globalThis.pwned = true",
  "constructor.constructor",
  "__proto__.constructor.constructor",
  "a](globalThis.pwned = true)[",
  "-->\nglobalThis.pwned = true",
  "</script><script>globalThis.pwned = true</script>",
  "torch.constructor.constructor('globalThis.pwned = true')()",
  "...[globalThis.pwned = true]",
  "\\",
  "\r\n*/",
];

function hostile(random: Random): string {
  if (random.next() < 0.15) return random.pick(ATTACKS);
  const length = 1 + random.below(5);
  return Array.from({ length }, () => random.pick(PIECES)).join(random.pick(["", "", " ", ".", "_"]));
}

interface Made {
  readonly graph: Graph;
  /** How many hostile texts went in. */
  readonly count: number;
}

/** A graph in which everything that can be text is hostile. */
function hostileGraph(random: Random): Made {
  const graph = new Graph();
  const owner = random.next() < 0.5 ? GraphModule.ofGraph(graph) : undefined;
  const nodes: Node[] = [];
  const used = new Set<string>();
  let count = 0;
  const text = (): string => {
    count += 1;
    return hostile(random);
  };
  const arg = (): Parameters<Graph["output"]>[0] =>
    random.pick<() => Parameters<Graph["output"]>[0]>([
      () => text(),
      () => [text(), random.pick(nodes) ?? null],
      () => new Map([[text(), text()]]),
      () => op(text()),
      () => new DeviceArg(text()),
      () => new LayoutArg(text() as "strided"),
      () => random.pick(nodes) ?? 1,
    ])();
  const kwargs = (): Map<string, ReturnType<typeof arg>> =>
    new Map(Array.from({ length: random.below(3) }, () => [text().replace(/^\d+$/, "_"), arg()]));
  const add = (opcode: Opcode, target: string, args: ReturnType<typeof arg>[]): void => {
    const wanted = text();
    const hasName = random.next() < 0.5 && !used.has(wanted) && !graph.names.isUsed(wanted);
    const options = ["placeholder", "output", "get_attr"].includes(opcode) ? new Map() : kwargs();
    const node = hasName
      ? graph.createNamedNode(opcode, target, args, options, wanted)
      : graph.createNode(opcode, target, args, options, wanted);
    used.add(wanted);
    if (random.next() < 0.3) node.type = text();
    if (random.next() < 0.3) node.stackTrace = `  File "${text()}", line 1, in ${text()}\n    ${text()}`;
    if (random.next() < 0.2) node.meta.set("custom", { [text()]: text() }).set("note", text());
    if (random.next() < 0.2) node.meta.set("val", META);
    nodes.push(node);
  };
  const star = random.next();
  for (let i = random.below(3); i >= 0; i--)
    add("placeholder", text().replace(/^\*+/, "_"), random.next() < 0.3 ? [arg()] : []);
  if (star < 0.2) add("placeholder", `*${text()}`, []);
  for (let i = 0; i < 12; i++) {
    const prefix = random.pick(["", "", "torch.", "operator.", "torch.nn.functional.", "torch.ops.", "builtins."]);
    random.pick<() => void>([
      () => add("call_function", prefix + text(), [arg(), arg()]),
      () => add("call_function", "builtins.getattr", [arg(), text()]),
      () => add("call_method", random.next() < 0.1 ? "__call__" : text(), [arg(), arg()]),
      () => add("call_module", text(), [arg()]),
      () => add("get_attr", text(), []),
    ])();
  }
  if (owner !== undefined) {
    for (let i = 0; i < 2; i++) owner.attributes.set(text(), { kind: "module", module: new GraphModule() });
    owner.className = text();
  }
  if (random.next() < 0.8) add("output", "output", [arg()]);
  return { graph, count };
}

const META = new TensorMeta({
  dtype: "float32",
  sizes: [2, new SymExpr("Symbol('*/ pwned() /*')")],
  strides: [1, 1],
  storageOffset: 0,
  device: new DeviceArg("*/ pwned() /*"),
  layout: new LayoutArg("strided"),
  requiresGrad: false,
});

type Ast = AstNode & Record<string, unknown>;

/** Refuses a syntax tree that has anything but what generated code is made of. */
class Checker {
  readonly #free: ReadonlySet<string>;
  readonly #locals = new Set<string>();

  constructor(free: Iterable<string>) {
    this.#free = new Set(free);
  }

  program(ast: Ast): void {
    const [fn, ...others] = ast["body"] as Ast[];
    expect(others).toEqual([]);
    const { type, id, params, body, async, generator } = fn as Ast;
    expect([type, (id as Ast)["name"], async, generator]).toEqual(["FunctionDeclaration", "forward", false, false]);
    for (const param of params as Ast[]) this.#parameter(param);
    const statements = (body as Ast)["body"] as Ast[];
    for (const statement of statements) this.#statement(statement);
  }

  #parameter(param: Ast): void {
    if (param.type === "RestElement") return this.#declare(param["argument"] as Ast);
    if (param.type !== "AssignmentPattern") return this.#declare(param);
    this.#declare(param["left"] as Ast);
    this.#expression(param["right"] as Ast);
  }

  #declare(id: Ast): void {
    expect(id.type).toBe("Identifier");
    const name = id["name"] as string;
    expect(this.#locals.has(name) || this.#free.has(name), `${name} is declared twice or hides what is used`).toBe(
      false,
    );
    this.#locals.add(name);
  }

  #statement(statement: Ast): void {
    switch (statement.type) {
      case "VariableDeclaration": {
        const [declarator, ...others] = statement["declarations"] as Ast[];
        expect([statement["kind"], others]).toEqual(["let", []]);
        this.#expression((declarator as Ast)["init"] as Ast);
        this.#declare((declarator as Ast)["id"] as Ast);
        return;
      }
      case "ReturnStatement":
        this.#expression(statement["argument"] as Ast);
        return;
      case "ExpressionStatement":
        this.#release(statement["expression"] as Ast);
        return;
      default:
        throw new Error(`a statement of type ${statement.type}`);
    }
  }

  /** `a = b = null` of variables. */
  #release(expression: Ast): void {
    expect([expression.type, expression["operator"]]).toEqual(["AssignmentExpression", "="]);
    const { left, right } = expression as unknown as { left: Ast; right: Ast };
    expect(left.type === "Identifier" && this.#locals.has(left["name"] as string)).toBe(true);
    if (right.type === "Literal") expect(right["value"]).toBe(null);
    else this.#release(right);
  }

  #expression(expression: Ast): void {
    switch (expression.type) {
      case "Literal":
        expect(expression["regex"]).toBe(undefined);
        return;
      case "ThisExpression":
        return;
      case "Identifier": {
        const name = expression["name"] as string;
        const isKnown = this.#locals.has(name) || this.#free.has(name) || name === "NaN" || name === "Infinity";
        expect(isKnown, `${name} is a variable or declared as a global`).toBe(true);
        return;
      }
      case "UnaryExpression":
        expect(expression["operator"]).toBe("-");
        this.#expression(expression["argument"] as Ast);
        return;
      case "ArrayExpression":
        for (const it of expression["elements"] as Ast[]) this.#expression(it);
        return;
      case "ObjectExpression":
        for (const it of expression["properties"] as Ast[]) this.#property(it);
        return;
      case "CallExpression":
        expect(expression["optional"]).toBe(false);
        this.#expression(expression["callee"] as Ast);
        for (const it of expression["arguments"] as Ast[]) this.#expression(it);
        return;
      case "MemberExpression": {
        const { object, property, computed } = expression as unknown as {
          object: Ast;
          property: Ast;
          computed: boolean;
        };
        this.#expression(object);
        expect(property.type).toBe(computed ? "Literal" : "Identifier");
        const name = (computed ? property["value"] : property["name"]) as string;
        expect(typeof name === "string" && !FORBIDDEN.has(name), `the member ${name}`).toBe(true);
        return;
      }
      default:
        throw new Error(`an expression of type ${expression.type}`);
    }
  }

  #property(property: Ast): void {
    const { kind, method, key, value, computed } = property as unknown as Record<string, unknown> & { key: Ast };
    expect([kind, method]).toEqual(["init", false]);
    expect(computed ? key["value"] : "__proto__", "a key that is the prototype").toBe("__proto__");
    expect(["Identifier", "Literal"]).toContain(key.type);
    expect(computed || (key["name"] ?? key["value"]) !== "__proto__").toBe(true);
    this.#expression(value as Ast);
  }
}

const FORBIDDEN: ReadonlySet<string> = new Set(
  Object.getOwnPropertyNames(Object.prototype).concat("prototype", "caller", "callee", "arguments"),
);

/** Parses generated code, checks what it is made of, and gives its comments. */
function check(source: string, free: Iterable<string>): Comment[] {
  const comments: Comment[] = [];
  let ast: AstNode;
  try {
    ast = parse(source, { ecmaVersion: "latest", sourceType: "module", onComment: comments });
  } catch (error) {
    throw new Error(source, { cause: error });
  }
  new Checker(free).program(ast as unknown as Ast);
  // A script may hold it as well as a module.
  parse(source, { ecmaVersion: "latest", sourceType: "script" });
  expect(/<\/|<!--/.test(source)).toBe(false);
  expect(source.replace(/[ -~\n]/g, "").replace(/[\p{L}\p{M}\p{N}\p{P}\p{S}]/gu, ""), "only printable text").toBe("");
  return comments;
}

/** Answers every call and member with itself, and cannot be changed. */
const ANY: unknown = new Proxy(() => undefined, {
  get: (_, key) => (key === Symbol.iterator || key === Symbol.toPrimitive ? undefined : ANY),
  apply: () => ANY,
  set: () => false,
});

function refusalOf(body: () => unknown): string {
  try {
    body();
    return "";
  } catch (error) {
    return String(error);
  }
}

describe("hostile graphs", () => {
  test("generate code that is only what it should be, for 100,000 hostile texts", { timeout: 120_000 }, () => {
    const random = new Random(4);
    let count = 0;
    while (count < 100_000) {
      const made = hostileGraph(random);
      count += made.count;
      const { graph } = made;
      const nodes = [...graph.nodes];
      const { source, globals, lineMap } = graph.generateCode();
      const comments = check(source, globals.keys());
      expect(comments.length).toBe(nodes.filter((it) => it.type !== undefined).length);
      // A line for the head, one for each statement and one for the end, whatever the names had in them.
      const statements =
        nodes.filter((it) => it.op !== "placeholder").length + Number(graph.outputNode() === undefined);
      expect(source.split(/\r\n|[\n\r\u2028\u2029]/).length).toBe(statements + 3);
      expect([...lineMap.values()]).toEqual(nodes.filter((it) => it.op !== "placeholder"));
      if (random.next() < 0.2) {
        const verbose = { includeDevice: true, includeStride: true, additionalMeta: ["note"] };
        check(graph.generateCode({ verbose }).source, globals.keys());
      }
    }
  });

  test("run nothing that they name, but what the host gives them", { timeout: 60_000 }, () => {
    const random = new Random(44);
    for (let i = 0; i < 300; i++) {
      const { graph } = hostileGraph(random);
      const { source, globals } = graph.generateCode();
      const context = createContext({ pwned: false });
      for (const name of globals.keys()) context[name] = ANY;
      const before = Object.keys(context);
      check(source, globals.keys());
      const forward = runInContext(`"use strict"; (${source})`, context) as (...inputs: unknown[]) => unknown;
      // What is not there cannot be called, which is no harm.
      expect(
        refusalOf(() => Reflect.apply(forward, ANY, [ANY, ANY, ANY, ANY])),
        source,
      ).toMatch(/^$|^TypeError: /);
      expect([context["pwned"], Object.keys(context)]).toEqual([false, before]);
      expect((globalThis as { pwned?: unknown }).pwned).toBe(undefined);
    }
  });

  test("print as readable classes", () => {
    const random = new Random(444);
    for (let i = 0; i < 200; i++) {
      const { graph } = hostileGraph(random);
      const gm = GraphModule.ofGraph(graph, hostile(random));
      for (let at = 0; at < 2; at++) {
        const inner = GraphModule.ofGraph(hostileGraph(random).graph, hostile(random));
        gm.attributes.set(hostile(random), { kind: "module", module: inner });
      }
      const text = formatReadable(gm);
      parse(`const nn = {}; ${text}`, { ecmaVersion: "latest", sourceType: "module" });
    }
  });
});
