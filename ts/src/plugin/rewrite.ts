/**
 * Rewrites a file so that whatever JavaScript decides about a value, it decides after a look at it.
 *
 * `if (x)` becomes `if (__tracefx.$test(x, "if"))`, `x === y` becomes `__tracefx.$compare(x, "===", y)`, and with
 * `operators` `x + y` becomes `__tracefx.$operator(x, "+", y)`. The calls refuse traced values, or record them, and do
 * exactly what JavaScript does with anything else: every operand is evaluated once, in the same order, or not at all.
 *
 * Text is only put in; what is there keeps its place, so strings, comments and automatic semicolons are never touched.
 *
 * @module
 */
import { type AnyNode, type Options, parse, type Program, type Token } from "acorn";
import MagicString, { type SourceMap } from "magic-string";
import { boundNames } from "../trace/analysis/scope.ts";
import { bare, children, isFunction, isNullish, keyName } from "../trace/analysis/syntax.ts";
import { checkOptions } from "../base/given.ts";

/** How a file is rewritten. */
export interface RewriteOptions {
  /** The name of the file, for its source map. */
  readonly id?: string;
  /** Whether `x + y`, `-x`, `x < y` and the other operators are recorded for tensors and traced values. */
  readonly operators?: boolean;
  /** Of which kind the file is; without it, what stands in it tells. */
  readonly format?: ModuleFormat;
  /** Where the calls come from; by default `tracefx/checked`. */
  readonly runtime?: Runtime;
}

/** A module with imports and exports, or one of CommonJS. */
export type ModuleFormat = "module" | "commonjs";

/** Where the calls come from. */
export interface Runtime {
  /** What a module imports them from. */
  readonly specifier: string;
  /** The expression by which CommonJS gets them. */
  readonly expression: string;
}

/** A file that was rewritten. */
export interface Rewritten {
  readonly code: string;
  readonly map: SourceMap;
}

/** The path by which the calls are imported. */
export const RUNTIME = "tracefx/checked";

const PACKAGE: Runtime = { specifier: RUNTIME, expression: `require("${RUNTIME}")` };

const COMPARISONS = new Set(["===", "!==", "==", "!="]);

const OPERATORS = new Set(["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>"]);

type Asking = "$test" | "$plain" | "$is" | "$keys";

/** What holds its elements, or its keys, by their identity. */
const KEYED: ReadonlySet<string> = new Set(["Map", "Set", "WeakMap", "WeakSet"]);

/** Functions that ask something about their argument, by the method that looks at it first. */
const ASKING: ReadonlyMap<string, Asking> = new Map<string, Asking>([
  ["Boolean", "$test"],
  ["console.assert", "$test"],
  ["assert", "$test"],
  ["Object.is", "$is"],
  ...Array.from(KEYED, (name): [string, Asking] => [name, "$keys"]),
  ...[
    "Array",
    "Array.isArray",
    "Number.isFinite",
    "Number.isInteger",
    "Number.isNaN",
    "Number.isSafeInteger",
    "Object.getOwnPropertyDescriptor",
    "Object.getPrototypeOf",
    "Object.hasOwn",
    "Object.isFrozen",
    "Reflect.getOwnPropertyDescriptor",
    "Reflect.getPrototypeOf",
    "Reflect.isExtensible",
  ].map((name): [string, Asking] => [name, "$plain"]),
]);

/** Methods that take a predicate first. */
const SELECTING = new Set(["filter", "find", "findIndex", "findLast", "findLastIndex", "some", "every"]);

/** Methods that look for their argument. */
const SEEKING = new Set(["includes", "indexOf", "lastIndexOf", "has", "get", "delete"]);

/** Methods that keep their argument as a key, or as an element by its identity. */
const KEEPING = new Set(["add", "set"]);

/**
 * Rewrites a file of JavaScript. Gives nothing where nothing is to be done: for a file that was rewritten before, too.
 *
 * @example
 * ```ts
 * rewrite("if (x) y();")?.code; // import { __tracefx } from "tracefx/checked"; if (__tracefx.$test(x, "if")) y();
 * ```
 * @throws SyntaxError for a file that is not JavaScript.
 */
export function rewrite(code: string, options: RewriteOptions = {}): Rewritten | undefined {
  checkOptions("rewrite", options, ["id", "operators", "format", "runtime"]);
  const { runtime = PACKAGE } = options;
  if (code.includes(`"${runtime.specifier}"`) || code.includes(runtime.expression)) return undefined;
  const tokens: Token[] = [];
  const common: Options = { ecmaVersion: "latest", ranges: true, allowHashBang: true, onToken: tokens };
  const { program, isModule } = parsed(code, common, tokens, options.format);
  const rewriter = new Rewriter(code, program, tokens, options.operators === true);
  rewriter.visit(program);
  if (!rewriter.text.hasChanged()) return undefined;
  rewriter.text.appendLeft(rewriter.afterDirectives(), header(rewriter.runtime, isModule, runtime));
  const map = rewriter.text.generateMap({
    hires: true,
    includeContent: true,
    ...(options.id === undefined ? {} : { source: options.id }),
  });
  return { code: rewriter.text.toString(), map };
}

function parsed(
  code: string,
  common: Options,
  tokens: Token[],
  format: ModuleFormat | undefined,
): { program: Program; isModule: boolean } {
  const asScript = (): Program => parse(code, { ...common, sourceType: "script", allowReturnOutsideFunction: true });
  if (format === "commonjs") return { program: asScript(), isModule: false };
  try {
    const program = parse(code, { ...common, sourceType: "module" });
    if (format === "module") return { program, isModule: true };
    // A file without imports and exports may be of either kind; what CommonJS uses tells.
    const isModule = program.body.some((it) => DECLARES_MODULE.test(it.type)) || !COMMON_JS.test(code);
    return { program, isModule };
  } catch (error) {
    if (format === "module") throw error;
    tokens.length = 0;
    try {
      return { program: asScript(), isModule: false };
    } catch {
      throw error;
    }
  }
}

const DECLARES_MODULE = /^(Import|Export)/;

const COMMON_JS = /\brequire\s*\(|\bmodule\.exports\b|\bexports\.\w/;

/** It goes on the line of the first statement, so that no line moves. */
function header(name: string, isModule: boolean, { specifier, expression }: Runtime): string {
  const spec =
    name === "__tracefx" ? "{ __tracefx }" : isModule ? `{ __tracefx as ${name} }` : `{ __tracefx: ${name} }`;
  return isModule ? `import ${spec} from "${specifier}"; ` : `const ${spec} = ${expression}; `;
}

class Rewriter {
  readonly text: MagicString;
  readonly runtime: string;
  readonly #code: string;
  readonly #program: Program;
  readonly #tokens: readonly Token[];
  readonly #operators: boolean;
  readonly #declared: ReadonlySet<string>;
  /** Where statements begin that are expressions. */
  readonly #statements = new Set<number>();

  constructor(code: string, program: Program, tokens: readonly Token[], operators: boolean) {
    this.text = new MagicString(code);
    this.#code = code;
    this.#program = program;
    this.#tokens = tokens;
    this.#operators = operators;
    this.#declared = new Set(declarations(program));
    let name = "__tracefx";
    while (code.includes(name) && this.#declared.has(name)) name = `${name}_`;
    this.runtime = name;
  }

  /** Where the import of the calls goes: behind the directives, which must come first. */
  afterDirectives(): number {
    const first = this.#program.body.find((it) => !("directive" in it));
    return first?.start ?? this.#code.length;
  }

  /** Rewrites a node and all that is in it; what is outside is put in first. */
  visit(node: AnyNode): void {
    this.#rewrite(node);
    for (const child of children(node)) this.visit(child);
  }

  #rewrite(node: AnyNode): void {
    switch (node.type) {
      case "ExpressionStatement":
        this.#statements.add(node.start);
        return undefined;
      case "IfStatement":
        return this.#wrap(node.test, "$test", "if");
      case "ConditionalExpression":
        return this.#wrap(node.test, "$test", "?:");
      case "WhileStatement":
        return this.#wrap(node.test, "$test", "while");
      case "DoWhileStatement":
        return this.#wrap(node.test, "$test", "do while");
      case "ForStatement":
        return node.test ? this.#wrap(node.test, "$test", "for") : undefined;
      case "LogicalExpression":
        return this.#wrap(node.left, node.operator === "??" ? "$present" : "$test", node.operator);
      case "SwitchStatement":
        this.#discriminant(node);
        for (const { test } of node.cases) if (test) this.#wrap(test, "$plain", "case");
        return undefined;
      case "UnaryExpression":
        return this.#unary(node);
      case "BinaryExpression":
        return this.#binary(node);
      case "AssignmentExpression":
        return this.#assignment(node);
      case "MemberExpression":
        return node.optional && node.object.type !== "Super" ? this.#wrap(node.object, "$present", "?.") : undefined;
      case "CallExpression":
      case "NewExpression":
        return this.#call(node);
      default:
        return undefined;
    }
  }

  /** What is switched on; the cases are given for a value that equals one without being the same. */
  #discriminant({ discriminant, cases }: AnyNode & { type: "SwitchStatement" }): void {
    const tests = cases.flatMap(({ test }) => (test ? [test] : []));
    // What is more than read must not run twice.
    if (!tests.every(isReadOnly)) return this.#wrap(discriminant, "$plain", "switch");
    if (isPlain(discriminant, !this.#operators)) return;
    const texts = tests.map((it) => this.#code.slice(it.start, it.end)).join(", ");
    const [open, close] = discriminant.type === "SequenceExpression" ? ["(", ")"] : ["", ""];
    this.text.appendRight(discriminant.start, `${this.runtime}.$switch(${open}`);
    this.text.prependLeft(discriminant.end, `${close}, () => [${texts}])`);
  }

  #unary(node: AnyNode & { type: "UnaryExpression" }): void {
    const { operator, argument } = node;
    if (operator === "!") this.#wrap(argument, "$test", "!");
    else if (operator === "typeof") {
      // The type of a variable that there is not is "undefined", and reading it would throw.
      const isUnknown = argument.type === "Identifier" && !this.#declared.has(argument.name);
      if (!isUnknown) this.#wrap(argument, "$plain", "typeof");
    } else if (
      this.#operators &&
      (operator === "-" || operator === "+" || operator === "~") &&
      !isPlain(argument, false)
    ) {
      this.text.update(node.start, node.start + 1, `${this.runtime}.$unary("${operator}", `);
      this.text.prependLeft(node.end, ")");
    }
  }

  #binary(node: AnyNode & { type: "BinaryExpression" }): void {
    const { operator, left, right } = node;
    if (left.type === "PrivateIdentifier") return;
    if (COMPARISONS.has(operator)) {
      if (isNullish(left) || isNullish(right)) this.#wrap(isNullish(left) ? right : left, "$present", operator);
      else if (!this.#isDecided(left) && !this.#isDecided(right)) this.#infix(node, "$compare");
    } else if (operator === "instanceof") {
      if (!isTracingClass(right)) this.#wrap(left, "$plain", operator);
    } else if (this.#operators && OPERATORS.has(operator) && !(isPlain(left, false) && isPlain(right, false))) {
      this.#infix(node, "$operator");
    }
  }

  /** Turns `left operator right` into a call, with the operator as its second argument. */
  #infix(node: AnyNode & { type: "BinaryExpression" }, method: string): void {
    const token = this.#tokenBetween(node.left.end, node.right.start, node.operator);
    this.text.appendRight(node.start, `${this.runtime}.${method}(`);
    this.text.update(token.start, token.end, `, "${node.operator}",`);
    this.text.prependLeft(node.end, ")");
  }

  #assignment(node: AnyNode & { type: "AssignmentExpression" }): void {
    const { operator, left } = node;
    const isLogical = operator === "&&=" || operator === "||=" || operator === "??=";
    const binary = operator.slice(0, -1);
    if (!isLogical && !(this.#operators && OPERATORS.has(binary))) return;
    if (left.type === "Identifier") this.#assignVariable(node, left.name, isLogical);
    else if (left.type === "MemberExpression") this.#assignMember(node, left, isLogical);
  }

  #assignVariable(node: AnyNode & { type: "AssignmentExpression" }, name: string, isLogical: boolean): void {
    const { operator } = node;
    if (isLogical) {
      const method = operator === "??=" ? "$present" : "$test";
      // A statement that begins with a parenthesis would go on from the line before, so it begins with the call.
      const isFirst = this.#statements.has(node.start);
      this.text.appendRight(node.start, `${isFirst ? "" : "("}${this.runtime}.${method}(${name}, "${operator}"), `);
      if (!isFirst) this.text.prependLeft(node.end, ")");
    } else {
      const token = this.#tokenBetween(node.left.end, node.right.start, operator);
      this.text.update(token.start, token.end, `= ${this.runtime}.$operator(${name}, "${operator.slice(0, -1)}",`);
      this.text.prependLeft(node.end, ")");
    }
  }

  /** `object.key op= value` becomes an assignment to a stand-in that has looked `object` and `key` up once. */
  #assignMember(
    node: AnyNode & { type: "AssignmentExpression" },
    left: AnyNode & { type: "MemberExpression" },
    isLogical: boolean,
  ): void {
    // Neither `super` nor private names can be handed to a function.
    if (left.object.type === "Super" || left.property.type === "PrivateIdentifier") return;
    const { operator } = node;
    const token = this.#tokenBetween(left.end, node.right.start, operator);
    // Parentheses around the target stay around the call.
    this.text.appendRight(left.start, `${this.runtime}.$member(`);
    this.#separateKey(left);
    if (isLogical) {
      this.text.prependLeft(left.end, `, "${operator}").value`);
    } else {
      this.text.prependLeft(left.end, ")");
      this.text.update(token.start, token.end, `.update("${operator.slice(0, -1)}",`);
      this.text.prependLeft(node.end, ")");
    }
  }

  /** Turns `.key` into `, "key"`, and `[key]` into `, key`. */
  #separateKey({ object, property, computed, end }: AnyNode & { type: "MemberExpression" }): void {
    if (computed) {
      const open = this.#tokenBetween(object.end, property.start, "[");
      this.text.update(open.start, open.end, ", (");
      this.text.update(end - 1, end, ")");
    } else {
      const dot = this.#tokenBetween(object.end, property.start, ".");
      this.text.update(dot.start, dot.end, ", ");
      this.text.update(property.start, property.end, `"${this.#code.slice(property.start, property.end)}"`);
    }
  }

  #call(node: AnyNode & { type: "CallExpression" | "NewExpression" }): void {
    const { callee } = node;
    const [first] = node.arguments;
    if (first === undefined || first.type === "SpreadElement") return;
    const asked = this.#asking(node);
    const text = this.#code.slice(callee.start, callee.end);
    if (asked === "$is" && node.arguments.length === 2) {
      this.text.update(callee.start, callee.end, `${this.runtime}.$is`);
      return;
    }
    if (asked === "$test" && text.endsWith("assert"))
      return this.#wrap(first, asked, text, { message: messageOf(node.arguments[1]) });
    if (asked !== undefined)
      return this.#wrap(first, asked === "$is" ? "$plain" : asked, text, { isAny: asked === "$keys" });
    if (node.type === "NewExpression" || callee.type !== "MemberExpression" || callee.object.type === "Super") return;
    const name = callee.computed || node.optional || callee.optional ? undefined : keyName(callee.property, false);
    if (name === undefined || callee.property.type === "PrivateIdentifier") return;
    if (SELECTING.has(name)) this.#wrap(first, "$predicate", name, { isAny: true });
    else if (KEEPING.has(name)) {
      if (!isPlain(callee.object, !this.#operators) && !isPlain(first, !this.#operators))
        this.#wrap(callee.object, "$holder", name);
    } else if (SEEKING.has(name)) {
      this.text.appendRight(callee.start, `${this.runtime}.$method(`);
      this.#separateKey(callee);
      this.text.prependLeft(callee.end, ")");
    }
  }

  /** The method that looks at the argument of a function which asks something about it. */
  #asking(node: AnyNode & { type: "CallExpression" | "NewExpression" }): Asking | undefined {
    const root = node.callee.type === "MemberExpression" ? node.callee.object : node.callee;
    if (root.type !== "Identifier") return undefined;
    const name = this.#code.slice(node.callee.start, node.callee.end);
    // An array of one element is made by any argument but a number, so only a single argument asks something.
    if (name === "Array" && node.arguments.length !== 1) return undefined;
    if (KEYED.has(name) && node.type !== "NewExpression") return undefined;
    if (this.#declared.has(root.name) && root.name !== "assert") return undefined;
    return ASKING.get(name);
  }

  /** Puts a look at a value around it; `isAny` says that what is plain is looked at as well. */
  #wrap(
    node: AnyNode,
    method: string,
    construct: string,
    more: { isAny?: boolean; message?: string | undefined } = {},
  ): void {
    if (more.isAny === true ? node.type === "Literal" : isPlain(node, this.#operators === false)) return;
    const inner = node.type === "SequenceExpression" ? "(" : "";
    const said = [construct, ...(more.message === undefined ? [] : [more.message])]
      .map((it) => JSON.stringify(it))
      .join(", ");
    this.text.appendRight(node.start, `${this.runtime}.${method}(${inner}`);
    this.text.prependLeft(node.end, `${inner === "" ? "" : ")"}, ${said})`);
  }

  /** Whether comparing this tells what it is anyway: `typeof x === "string"`. */
  #isDecided(node: AnyNode): boolean {
    return isPlain(node, !this.#operators) && node.type !== "Literal";
  }

  /** The token of an operator, which may stand between comments and parentheses. */
  #tokenBetween(start: number, end: number, text: string): Token {
    let low = 0;
    for (let high = this.#tokens.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#tokens[middle]?.start ?? 0) < start) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < this.#tokens.length; at++) {
      const token = this.#tokens[at];
      if (token === undefined || token.start >= end) break;
      if (this.#code.slice(token.start, token.end) === text) return token;
    }
    throw new SyntaxError(`no \`${text}\` between ${start} and ${end}`);
  }
}

/** Whether an expression can be nothing that is traced; of numbers only if `numbers` says so. */
function isPlain(node: AnyNode, numbers: boolean): boolean {
  switch (node.type) {
    case "Literal":
    case "TemplateLiteral":
    case "ArrayExpression":
    case "ObjectExpression":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
    case "ClassExpression":
    case "UpdateExpression":
    case "ThisExpression":
      return true;
    case "Identifier":
      return node.name === "undefined" || node.name === "NaN" || node.name === "Infinity";
    case "UnaryExpression":
      return numbers || !["-", "+", "~"].includes(node.operator) || isPlain(node.argument, true);
    case "BinaryExpression":
      return numbers || !OPERATORS.has(node.operator);
    default:
      return false;
  }
}

/** Whether nothing happens but that values are read, so that it may be evaluated once more. */
function isReadOnly(node: AnyNode): boolean {
  switch (node.type) {
    case "Literal":
    case "Identifier":
      return true;
    case "MemberExpression":
      return !node.computed && node.property.type === "Identifier" && isReadOnly(node.object);
    case "UnaryExpression":
      return node.operator !== "delete" && isReadOnly(node.argument);
    default:
      return false;
  }
}

/** The message of an assertion, which the rewritten code says twice. */
function messageOf(node: AnyNode | undefined): string | undefined {
  return node?.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}

/** `x instanceof Proxy` asks whether something is being traced, which is what it says. */
function isTracingClass(node: AnyNode): boolean {
  const it = bare(node);
  const name =
    it.type === "MemberExpression" ? keyName(it.property, it.computed) : it.type === "Identifier" ? it.name : "";
  return name === "Proxy" || name === "Attribute";
}

/** All names that are declared anywhere in a file. */
function* declarations(node: AnyNode): Generator<string> {
  if (node.type === "VariableDeclarator") yield* boundNames(node.id);
  if (node.type === "CatchClause" && node.param) yield* boundNames(node.param);
  if (isFunction(node)) for (const param of node.params) yield* boundNames(param);
  if ("id" in node && node.id !== null && node.id !== undefined && node.id.type === "Identifier") yield node.id.name;
  if ("local" in node && node.local.type === "Identifier") yield node.local.name;
  for (const child of children(node)) yield* declarations(child);
}
