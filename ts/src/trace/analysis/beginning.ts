/**
 * Whether a function may be run for a moment, up to the first thing that a trace would record, without anybody noticing.
 *
 * The statements are read in the order in which they would run. What only reads and computes goes on, what uses a traced
 * value ends the run, and everything else (a call of another function, an assignment to something outside) might do
 * something that must not be done twice.
 *
 * @module
 */
import { isKnown } from "./invocations.ts";
import { parseFunction, type Readable } from "./parse.ts";
import { boundNames } from "./scope.ts";
import { parameter } from "./signature.ts";
import { bare, keyName, type Syntax } from "./syntax.ts";

/** What is known of the values that the function would run with. */
export interface BeginningContext {
  /** The parameters that are traced values. */
  readonly traced: ReadonlySet<string>;
  /** Whether using a traced value ends the run; in an export some uses give a number. */
  readonly endsAtUse: boolean;
  /** What a member of `this` is. */
  readonly member: (path: readonly string[]) => "module" | "tensor" | "plain" | "computed";
}

/** What comes of running a piece of code: it ends the run, it goes on, or it may do something. */
type Outcome = "ends" | "goes on" | "acts";

/** Whether the function does nothing before a trace would record something, or before its end. */
export function isBeginningIdle(fn: Readable, context: BeginningContext): boolean {
  const parsed = parseFunction(fn);
  if (typeof parsed === "string" || parsed.node.async || parsed.node.generator) return false;
  const { node, source } = parsed;
  const beginning = new Beginning(context);
  for (const [index, param] of node.params.entries()) {
    if (parameter(param, index, source).default?.isConstant === false) return false;
    if (param.type === "ObjectPattern" || param.type === "ArrayPattern") return false;
    for (const name of boundNames(param)) beginning.locals.add(name);
  }
  if (node.body.type !== "BlockStatement") return beginning.value(node.body) !== "acts";
  return beginning.statement(node.body) !== "acts";
}

class Beginning {
  /** The variables of the function. */
  readonly locals = new Set<string>();
  readonly #context: BeginningContext;
  readonly #traced: Set<string>;

  constructor(context: BeginningContext) {
    this.#context = context;
    this.#traced = new Set(context.traced);
  }

  statement(node: Syntax): Outcome {
    switch (node.type) {
      case "EmptyStatement":
      case "FunctionDeclaration":
        return "goes on";
      case "ExpressionStatement":
        return this.value(node.expression);
      case "BlockStatement":
        return inOrder(node.body, (it) => this.statement(it));
      case "VariableDeclaration":
        return inOrder(node.declarations, ({ id, init }) => this.#declare(id, init ?? undefined));
      case "IfStatement": {
        const branches = [node.consequent, ...(node.alternate ? [node.alternate] : [])];
        return this.#chosen(node.test, () => branches.map((it) => this.statement(it)));
      }
      case "ReturnStatement":
        return node.argument && this.value(node.argument) === "acts" ? "acts" : "ends";
      case "ThrowStatement":
        return this.value(node.argument) === "acts" ? "acts" : "ends";
      case "SwitchStatement":
        return this.#endsWith(node.discriminant);
      case "WhileStatement":
        return this.#endsWith(node.test);
      case "ForOfStatement":
        return this.#isTraced(node.right) ? "ends" : this.#endsWith(node.right);
      default:
        return "acts";
    }
  }

  value(given: Syntax): Outcome {
    const node = bare(given);
    switch (node.type) {
      case "Identifier":
      case "Literal":
      case "ThisExpression":
      case "FunctionExpression":
      case "ArrowFunctionExpression":
        return "goes on";
      case "ArrayExpression":
        return inOrder(node.elements, (it) => (it === null ? "goes on" : this.#item(it)));
      case "ObjectExpression":
        return inOrder(node.properties, (it) =>
          it.type === "SpreadElement" ? this.#item(it) : it.computed ? "acts" : this.value(it.value),
        );
      case "TemplateLiteral":
        return inOrder(node.expressions, (it) => (this.#isTraced(it) ? "ends" : this.#endsWith(it)));
      case "UnaryExpression":
        return node.operator === "delete" ? "acts" : this.value(node.argument);
      case "BinaryExpression":
        if (node.left.type === "PrivateIdentifier" || node.operator === "instanceof") return "acts";
        return inOrder([node.left, node.right], (it) => this.value(it));
      case "LogicalExpression":
        return this.#chosen(node.left, () => [this.value(node.right), "goes on"]);
      case "ConditionalExpression":
        return this.#chosen(node.test, () => [this.value(node.consequent), this.value(node.alternate)]);
      case "SequenceExpression":
        return inOrder(node.expressions, (it) => this.value(it));
      case "AssignmentExpression": {
        const isLocal = node.left.type === "Identifier" && this.locals.has(node.left.name);
        const outcome = node.left.type === "Identifier" || isOfThis(node.left) ? this.value(node.right) : "acts";
        // From here on the variable may be something else.
        if (node.left.type === "Identifier" && !this.#isTraced(node.right)) this.#traced.delete(node.left.name);
        return outcome === "goes on" && !isLocal ? "acts" : outcome;
      }
      case "MemberExpression":
        return this.#read(node);
      case "CallExpression":
        return this.#call(node);
      default:
        return "acts";
    }
  }

  #declare(id: Syntax, init: Syntax | undefined): Outcome {
    if (init === undefined || id.type === "Identifier") {
      for (const name of boundNames(id)) this.locals.add(name);
      if (init === undefined) return "goes on";
      const outcome = this.value(init);
      if (this.#isTraced(init)) for (const name of boundNames(id)) this.#traced.add(name);
      return outcome;
    }
    if (this.#isTraced(init)) return this.value(init);
    const { type } = init;
    if (id.type !== "ArrayPattern" || type !== "ArrayExpression" || id.elements.some((it) => it?.type !== "Identifier"))
      return this.#endsWith(init);
    const outcome = this.value(init);
    id.elements.forEach((it, index) => {
      const item = init.elements[index];
      if (it === null) return;
      for (const name of boundNames(it)) this.locals.add(name);
      if (item && this.#isTraced(item)) for (const name of boundNames(it)) this.#traced.add(name);
    });
    return outcome;
  }

  /** What a decision leads to: the outcomes of all that may come of it, unless it ends the run. */
  #chosen(test: Syntax, branches: () => readonly Outcome[]): Outcome {
    const first = this.value(test);
    if (first !== "goes on") return first;
    const outcomes = branches();
    if (outcomes.includes("acts")) return "acts";
    return outcomes.length > 1 && outcomes.every((it) => it === "ends") ? "ends" : "goes on";
  }

  /** The outcome of something that would go on in a way that nobody follows. */
  #endsWith(node: Syntax): Outcome {
    return this.value(node) === "ends" ? "ends" : "acts";
  }

  #item(node: Syntax): Outcome {
    if (node.type !== "SpreadElement") return this.value(node);
    return this.#isTraced(node.argument) ? "ends" : this.#endsWith(node.argument);
  }

  #read(node: Syntax & { type: "MemberExpression" }): Outcome {
    const path = pathOf(node);
    if (path?.[0] === "this") {
      const kind = this.#context.member(path.slice(1));
      return kind === "computed" ? "acts" : kind === "tensor" ? "ends" : "goes on";
    }
    if (path !== undefined && this.#isOurs(path)) return "goes on";
    if (node.computed && this.value(node.property) !== "goes on") return this.#endsWith(node.property);
    const outcome = this.value(node.object);
    return outcome !== "goes on" || this.#isTraced(node.object) ? outcome : "acts";
  }

  #call(node: Syntax & { type: "CallExpression" }): Outcome {
    const callee = bare(node.callee);
    const given = (): Outcome => inOrder(node.arguments, (it) => this.#item(it));
    if (callee.type !== "MemberExpression") return given() === "ends" ? "ends" : "acts";
    const path = pathOf(callee);
    const isModule = path?.[0] === "this" && this.#context.member(path.slice(1, -1)) === "module";
    if (isModule && ["forward", "call"].includes(path?.at(-1) ?? "")) return given() === "acts" ? "acts" : "ends";
    const before = path?.[0] === "this" ? "goes on" : this.#read(callee);
    if (before !== "goes on") return before;
    const outcome = given();
    if (outcome !== "goes on") return outcome;
    const isUse = this.#isTraced(callee.object) || node.arguments.some((it) => this.#isTraced(it));
    if (!isUse || !(this.#isTraced(callee.object) || (path !== undefined && this.#isOurs(path)))) return "acts";
    return this.#context.endsAtUse ? "ends" : "goes on";
  }

  /** Whether a value is a traced one, or comes from one by what the package does. */
  #isTraced(given: Syntax): boolean {
    const node = bare(given);
    if (node.type === "Identifier") return this.#traced.has(node.name);
    if (node.type === "MemberExpression") return this.#isTraced(node.object);
    return node.type === "CallExpression" && this.#call(node) === "goes on";
  }

  #isOurs(path: readonly string[]): boolean {
    return isKnown(path) && !this.locals.has(path[0] ?? "");
  }
}

/** The outcome of pieces that run one after the other. */
function inOrder<T>(nodes: readonly T[], outcome: (node: T) => Outcome): Outcome {
  for (const node of nodes) {
    const one = outcome(node);
    if (one !== "goes on") return one;
  }
  return "goes on";
}

/** The names from a variable, or from `this`, to a member; undefined where one of them is computed. */
function pathOf(given: Syntax): string[] | undefined {
  const node = bare(given);
  if (node.type === "Identifier") return [node.name];
  if (node.type === "ThisExpression") return ["this"];
  if (node.type !== "MemberExpression") return undefined;
  const [holder, name] = [pathOf(node.object), keyName(node.property, node.computed)];
  return holder === undefined || name === undefined ? undefined : [...holder, name];
}

function isOfThis(node: Syntax): boolean {
  return node.type === "MemberExpression" && !node.computed && node.object.type === "ThisExpression";
}
