/**
 * What expressions give, and what they do to variables.
 *
 * @module
 */
import type { FindingKind } from "./findings.ts";
import { Invocations } from "./invocations.ts";
import { joinSources } from "./knowledge.ts";
import type { Scope } from "./scope.ts";
import { bare, children, type ClassSyntax, extent, isNullish, keyName, type Syntax } from "./syntax.ts";
import {
  ALWAYS,
  Cell,
  type ContainerShape,
  isContainer,
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
import type { Property, SpreadElement } from "acorn";

/** How many prototypes are looked at behind each other. */
const DEPTH = 8;

const RELATIONAL = new Set(["<", "<=", ">", ">=", "+", "-", "*", "/", "%", "**", "<<", ">>", ">>>", "&", "|", "^"]);

/** The part of a walk that follows expressions. */
export abstract class Expressions extends Invocations {
  /** Walks what a class holds, and gives the class. */
  abstract classBody(node: ClassSyntax, scope: Scope): Value;

  /** What an expression gives. */
  value(node: Syntax, scope: Scope): Value {
    const value = this.evaluate(bare(node), scope);
    if (value !== PLAIN) this.met |= value.traced;
    return value;
  }

  protected evaluate(node: Syntax, scope: Scope): Value {
    switch (node.type) {
      case "Identifier":
        return this.identifier(node.name, scope);
      case "ThisExpression":
        return scope.self;
      case "Super":
        return shaped(this.path("super", []));
      case "ArrayExpression":
        return this.arrayLiteral(node, scope);
      case "ObjectExpression":
        return this.objectLiteral(node, scope);
      case "FunctionExpression":
      case "ArrowFunctionExpression":
        return shaped(this.functionOf(node, scope));
      case "ClassExpression":
        return this.classBody(node, scope);
      case "UnaryExpression":
        return this.unary(node, scope);
      case "UpdateExpression":
        this.report("operator", node, node.operator, this.operand(node.argument, scope));
        this.noteChange(node, node.argument, node.operator, scope);
        return PLAIN;
      case "BinaryExpression":
        return this.binary(node, scope);
      case "LogicalExpression": {
        const left =
          node.operator === "??"
            ? this.nullish(node.left, scope, node.operator)
            : this.tested(node.left, scope, node.operator);
        return join(left, this.value(node.right, scope));
      }
      case "ConditionalExpression":
        this.tested(node.test, scope, "?:");
        return join(this.value(node.consequent, scope), this.value(node.alternate, scope));
      case "AssignmentExpression":
        return this.assignment(node, scope);
      case "MemberExpression":
        return this.read(this.holder(node, scope), node, scope);
      case "CallExpression":
      case "NewExpression":
        return this.call(node, scope);
      case "SequenceExpression":
        return node.expressions.map((it) => this.value(it, scope)).at(-1) ?? PLAIN;
      case "TemplateLiteral":
        return this.template(node, scope);
      case "TaggedTemplateExpression": {
        const tag = this.value(node.tag, scope);
        return this.apply(tag, [PLAIN, ...node.quasi.expressions.map((it) => this.value(it, scope))], node);
      }
      case "AwaitExpression":
        return this.value(node.argument, scope);
      case "YieldExpression":
        return this.yielded(node, scope);
      default:
        return PLAIN;
    }
  }

  /** What `yield` gives: what was sent; and `yield*` what the generator behind it returns, which gets what is sent. */
  protected yielded({ argument, delegate }: Syntax & { type: "YieldExpression" }, scope: Scope): Value {
    const sent = scope.owner?.sent.value ?? PLAIN;
    if (!argument) return sent;
    const value = this.value(argument, scope);
    scope.owner?.returns.add(delegate ? this.elements(value) : value);
    if (!delegate) return sent;
    for (const shape of value.shapes) {
      if (shape.kind === "generator") shape.sent?.add(sent);
      else if (shape.kind === "path" || shape.kind === "unknown") this.unresolved(argument, [sent], { callee: value });
    }
    return this.elements(value);
  }

  protected identifier(name: string, scope: Scope): Value {
    const cell = scope.find(name);
    if (cell !== undefined) return cell.value;
    return name === "undefined" ? PLAIN : shaped(this.path("free", [name]));
  }

  protected arrayLiteral(node: Syntax & { type: "ArrayExpression" }, scope: Scope): Value {
    const made = this.container("array", node);
    let isExact = true;
    node.elements.forEach((element, index) => {
      if (element === null) return;
      if (element.type === "SpreadElement") {
        made.elements.add(this.spread(element, scope));
        isExact = false;
      } else if (isExact) {
        this.named(made, String(index)).add(this.value(element, scope));
      } else {
        made.elements.add(this.value(element, scope));
      }
    });
    return shaped(made);
  }

  protected objectLiteral(node: Syntax & { type: "ObjectExpression" }, scope: Scope): Value {
    const made = this.container("object", node);
    for (const property of node.properties) {
      if (property.type === "SpreadElement") this.spreadInto(made, property, scope);
      else this.property(made, property, scope);
    }
    return shaped(made);
  }

  protected property(made: ContainerShape, property: Property, scope: Scope): void {
    const name = keyName(property.key, property.computed);
    if (property.computed) this.report("key", property.key, "[ ]", this.value(property.key, scope).traced);
    else if (name === "__proto__" && property.kind === "init" && !property.method && !property.shorthand) {
      this.inherit(property.value, shaped(made), this.value(property.value, scope));
      return;
    }
    if (property.method || property.kind !== "init") this.heads.set(property.value, property);
    const value = this.value(property.value, scope);
    if (property.kind === "set" && name !== undefined) {
      this.addSetter(made, name, value);
      return;
    }
    const cell = name === undefined ? made.elements : this.named(made, name);
    if (property.kind === "get") {
      for (const shape of value.shapes) if (shape.kind === "function") shape.self.add(shaped(made));
      cell.add(this.invoke(value, []));
    } else cell.add(value);
  }

  protected spreadInto(made: ContainerShape, property: SpreadElement, scope: Scope): void {
    const value = this.value(property.argument, scope);
    this.report("keys", property, "...", value.traced);
    for (const shape of value.shapes) {
      if (shape.kind !== "object") made.elements.add(this.elements(shaped(shape)));
      else {
        made.elements.add(shape.elements.value);
        for (const [name, cell] of shape.named) this.named(made, name).add(cell.value);
      }
    }
  }

  protected spread(node: SpreadElement, scope: Scope): Value {
    const value = this.value(node.argument, scope);
    this.report("iteration", node, "...", value.traced);
    return this.elements(value);
  }

  protected unary(node: Syntax & { type: "UnaryExpression" }, scope: Scope): Value {
    switch (node.operator) {
      case "!":
        this.tested(node.argument, scope, "!");
        return PLAIN;
      case "typeof":
        this.report("typeof", node, "typeof", this.identity(this.value(node.argument, scope)));
        return PLAIN;
      case "delete": {
        const target = bare(node.argument);
        if (target.type === "MemberExpression") this.report("write", node, "delete", this.holder(target, scope).traced);
        return PLAIN;
      }
      case "void":
        this.value(node.argument, scope);
        return PLAIN;
      default:
        this.report("operator", node, node.operator, this.operand(node.argument, scope));
        return PLAIN;
    }
  }

  protected binary(node: Syntax & { type: "BinaryExpression" }, scope: Scope): Value {
    const { operator } = node;
    const left = node.left.type === "PrivateIdentifier" ? PLAIN : this.value(node.left, scope);
    const right = this.value(node.right, scope);
    if (RELATIONAL.has(operator)) {
      this.report("operator", node, operator, this.taint(left) | this.taint(right));
    } else if (operator === "instanceof") {
      if (!isTracingClass(node.right)) this.report("instanceof", node, operator, this.identity(left));
    } else if (operator === "in") {
      this.report("key", node, operator, left.traced);
      this.report("keys", node, operator, right.traced);
    } else if (isNullish(node.left) || isNullish(node.right)) {
      this.asksNull(node, operator, join(left, right));
    } else if (!isTypeof(node.left) && !isTypeof(node.right)) {
      this.report("comparison", node, operator, this.identity(left) | this.identity(right));
    }
    return PLAIN;
  }

  protected assignment(node: Syntax & { type: "AssignmentExpression" }, scope: Scope): Value {
    const { operator } = node;
    if (operator === "=") {
      const value = this.value(node.right, scope);
      this.bind(node.left, value, scope);
      // A member that is given another value may be anything; one that is computed from what it was, counts.
      if (this.taint(value) === 0n && (node.left.type === "Identifier" || this.mentions(node.right, node.left)))
        this.noteChange(node, node.left, operator, scope);
      return value;
    }
    if (operator === "&&=" || operator === "||=" || operator === "??=") {
      const left =
        operator === "??=" ? this.nullish(node.left, scope, operator) : this.tested(node.left, scope, operator);
      const right = this.value(node.right, scope);
      this.bind(node.left, right, scope);
      return join(left, right);
    }
    const sources = this.operand(node.left, scope) | this.operand(node.right, scope);
    this.report("operator", node, operator, sources);
    this.noteChange(node, node.left, operator, scope);
    return PLAIN;
  }

  /** Notes that something outside of the function is changed. */
  protected noteChange(node: Syntax, changed: Syntax, construct: string, scope: Scope): void {
    const target = bare(changed);
    const isOutside =
      target.type === "Identifier"
        ? scope.isOutside(target.name)
        : target.type === "MemberExpression" &&
          [...this.value(target.object, scope).shapes].some(({ kind }) => kind === "path");
    if (isOutside) this.report("counter", node, construct, ALWAYS);
  }

  /** Whether an expression reads what another one stands for. */
  protected mentions(node: Syntax, read: Syntax): boolean {
    const textOf = (it: Syntax): string => this.text.slice(...extent(it));
    if (node.type === read.type && textOf(node) === textOf(read)) return true;
    for (const child of children(node)) if (this.mentions(child, read)) return true;
    return false;
  }

  protected template(node: Syntax & { type: "TemplateLiteral" }, scope: Scope): Value {
    const sources = joinSources(node.expressions, (it) => {
      const value = this.value(it, scope);
      this.report("string", it, "${ }", value.traced);
      return value.traced;
    });
    return tracedBy(sources);
  }

  /** The sources of an operand of an operator, members of the module among them. */
  protected operand(node: Syntax, scope: Scope): Sources {
    return this.taint(this.value(node, scope));
  }

  protected tested(node: Syntax, scope: Scope, construct: string, kind: FindingKind = "test"): Value {
    const value = this.value(node, scope);
    this.report(kind, bare(node), construct, value.traced | this.partsOf(value));
    return value;
  }

  protected nullish(node: Syntax, scope: Scope, construct: string): Value {
    const value = this.value(node, scope);
    this.asksNull(bare(node), construct, value);
    return present(value);
  }

  protected holder(node: Syntax & { type: "MemberExpression" }, scope: Scope): Value {
    return node.optional ? this.nullish(node.object, scope, "?.") : this.value(node.object, scope);
  }

  protected read(object: Value, node: Syntax & { type: "MemberExpression" }, scope: Scope): Value {
    const name = keyName(node.property, node.computed);
    if (node.computed) this.report("key", node.property, "[ ]", this.index(object, node.property, scope));
    return this.part(object, name, node);
  }

  /** The sources of a computed key; a traced value may be indexed with another one. */
  protected index(object: Value, key: Syntax, scope: Scope): Sources {
    const sources = this.value(key, scope).traced;
    return object.traced === 0n ? sources : 0n;
  }

  /** Gives a value to a pattern: a declaration, an assignment, or a parameter. */
  bind(target: Syntax, value: Value, scope: Scope, isParameter = false): void {
    const pattern = bare(target);
    switch (pattern.type) {
      case "Identifier": {
        const cell = scope.find(pattern.name);
        if (cell === undefined) this.report("leak", pattern, "=", this.taint(value));
        else cell.add(value);
        break;
      }
      case "MemberExpression":
        this.write(pattern, value, scope);
        break;
      case "AssignmentPattern":
        this.bind(pattern.left, join(value, this.value(pattern.right, scope)), scope, isParameter);
        break;
      case "RestElement":
        this.bind(pattern.argument, value, scope, isParameter);
        break;
      case "ArrayPattern":
        this.bindArray(pattern, value, scope);
        break;
      case "ObjectPattern":
        this.bindObject(pattern, value, scope);
        break;
      default:
        // TypeScript's parameter properties stand around the parameter.
        if ("parameter" in pattern) this.bind(pattern.parameter as Syntax, value, scope, isParameter);
    }
  }

  protected bindArray(pattern: Syntax & { type: "ArrayPattern" }, value: Value, scope: Scope): void {
    pattern.elements.forEach((element, index) => {
      if (element === null) return;
      if (element.type === "RestElement") {
        this.report("iteration", element, "...", value.traced);
        const rest = this.container("array", element);
        rest.elements.add(this.elements(value));
        this.bind(element, shaped(rest), scope);
      } else {
        this.bindPart(element, this.part(value, String(index), pattern), value, scope);
      }
    });
  }

  protected bindObject(pattern: Syntax & { type: "ObjectPattern" }, value: Value, scope: Scope): void {
    for (const property of pattern.properties) {
      if (property.type === "RestElement") {
        this.report("keys", property, "...", value.traced);
        const rest = this.container("object", property);
        for (const shape of value.shapes) rest.elements.add(this.elements(shaped(shape)));
        this.bind(property, shaped(rest), scope);
      } else {
        if (property.computed) this.report("key", property.key, "[ ]", this.index(value, property.key, scope));
        const part = this.part(value, keyName(property.key, property.computed), property.key);
        this.bindPart(property.value, part, value, scope);
      }
    }
  }

  protected bindPart(target: Syntax, part: Value, whole: Value, scope: Scope): void {
    if (target.type === "AssignmentPattern") this.report("default", target, "=", whole.traced);
    this.bind(target, part, scope);
  }

  protected write(target: Syntax & { type: "MemberExpression" }, value: Value, scope: Scope): void {
    const object = this.value(target.object, scope);
    const name = keyName(target.property, target.computed);
    if (target.computed) this.report("key", target.property, "[ ]", this.index(object, target.property, scope));
    this.report("write", target, "=", object.traced);
    if (name === "__proto__") this.inherit(target, object, value);
    this.writeInto(target, object, name, value);
  }

  override writeInto(node: Syntax, object: Value, name: string | undefined, value: Value): void {
    for (const shape of object.shapes) {
      if (shape.kind === "function") continue;
      if (shape.kind === "unknown") {
        shape.holds.add(value);
        this.report("leak", node, "=", this.taint(value));
      } else if (shape.kind === "path") {
        if (shape.root === "this") this.writeMember(node, this.path("this", [...shape.path, name ?? "*"]), value);
        else this.report("leak", node, "=", this.taint(value));
      } else {
        const setters = this.settersOf(shape, name ?? "");
        if (setters === PLAIN) (name === undefined ? shape.elements : this.named(shape, name)).add(value);
        else this.invoke(setters, [value]);
      }
    }
  }

  /** The functions that take what is assigned to a name of an object, its own and those that it inherits. */
  protected settersOf({ setters, prototypes }: ContainerShape, name: string, depth = 0): Value {
    const own = setters.get(name);
    if (own !== undefined || depth > DEPTH) return own?.value ?? PLAIN;
    return joinAll(
      [...prototypes.value.shapes].map((it) => (isContainer(it) ? this.settersOf(it, name, depth + 1) : PLAIN)),
    );
  }

  protected writeMember(target: Syntax, { path }: PathShape, value: Value): void {
    if (value.traced === 0n && value.shapes.size === 0) return;
    this.report("state", target, "=", this.taint(value));
    const key = path.join(".");
    const cell = this.written.get(key) ?? new Cell(this);
    this.written.set(key, cell);
    cell.add(value);
  }

  protected call(node: Syntax & { type: "CallExpression" | "NewExpression" }, scope: Scope): Value {
    const callee = bare(node.callee);
    const inner = callee.type === "SequenceExpression" ? bare(callee.expressions.at(-1) ?? callee) : callee;
    const args = node.arguments.flatMap((it) =>
      it.type === "SpreadElement" ? [this.spread(it, scope)] : [this.value(it, scope)],
    );
    const isOptional = node.type === "CallExpression" && node.optional;
    if (inner.type === "MemberExpression") {
      const receiver = this.holder(inner, scope);
      const name = keyName(inner.property, inner.computed);
      const method = this.read(receiver, inner, scope);
      if (isOptional) this.asksNull(inner, "?.", method);
      return this.callMethod(node, receiver, name, method, args);
    }
    // What a class outside makes of its arguments, its objects may have.
    if (inner.type === "Super")
      for (const shape of scope.self.shapes) if (shape.kind === "object") for (const it of args) shape.elements.add(it);
    const fn = isOptional ? this.nullish(inner, scope, "?.") : this.value(inner, scope);
    if (fn.shapes.size === 0) this.unresolved(node, args, { callee: PLAIN, on: fn });
    return join(this.apply(fn, args, node), node.type === "NewExpression" ? this.construct(fn, args) : PLAIN);
  }

  /** What `new` makes of the classes that a value may be: a class stands for its objects too. */
  protected construct(fn: Value, args: readonly Value[]): Value {
    const made: Value[] = [];
    for (const shape of fn.shapes) {
      if (shape.kind !== "object") continue;
      const maker = shape.named.get("constructor")?.value;
      if (maker !== undefined) this.invoke(maker, args);
      else if (shape.isOpaque) for (const it of args) shape.elements.add(it);
      else made.push(this.construct(shape.prototypes.value, args));
      made.push(shaped(shape));
    }
    return joinAll(made);
  }
}

function isTypeof(node: Syntax): boolean {
  const it = bare(node);
  return it.type === "UnaryExpression" && it.operator === "typeof";
}

/** `instanceof Proxy` asks whether something is being traced, which is what it says. */
function isTracingClass(node: Syntax): boolean {
  const it = bare(node);
  const name =
    it.type === "MemberExpression" ? keyName(it.property, it.computed) : it.type === "Identifier" ? it.name : "";
  return name === "Proxy" || name === "Attribute";
}
