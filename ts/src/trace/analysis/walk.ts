/**
 * The walk over a function that follows its traced values.
 *
 * It takes every path at once and forgets the order of assignments: a variable may be all that is ever assigned to it.
 * That needs no care for loops and closures, and errs to the side of finding too much. The function is walked until
 * nothing new comes out, and once more to report.
 *
 * @module
 */
import { Expressions } from "./expressions.ts";
import { Scope } from "./scope.ts";
import { type ClassSyntax, extent, isFunction, keyName, type Syntax } from "./syntax.ts";
import { ALWAYS, type ContainerShape, type FunctionShape, PLAIN, shaped, type Value } from "./value.ts";

/** The rounds after which a walk gives up; each one adds something, and few functions need more than four. */
const ROUNDS = 200;

/** The walk over one function, or over one file. */
export class Walk extends Expressions {
  /** Walks the given functions and all that they call, until nothing changes, then reports. */
  run(): void {
    let before = -1;
    for (let round = 0; before !== this.changes && round < ROUNDS; round++) {
      before = this.changes;
      this.walkFunctions();
    }
    this.isReporting = true;
    this.walkFunctions();
  }

  /** The texts of the functions of which no call was met, but for the one that is analysed. */
  uncalled(root: FunctionShape): string[] {
    return [...this.functions.values()].flatMap((it) =>
      it.isCalled || it === root ? [] : [this.text.slice(...extent(it.node))],
    );
  }

  /** Walks the statements of a block, in a scope of their own. */
  block(node: Syntax, statements: readonly Syntax[], scope: Scope): void {
    const inner = this.scopeOf(node, scope);
    inner.declareBlock(statements);
    for (const statement of statements) this.statement(statement, inner);
  }

  /** Walks one statement. */
  statement(node: Syntax, scope: Scope): void {
    switch (node.type) {
      case "ExpressionStatement":
        this.value(node.expression, scope);
        break;
      case "BlockStatement":
      case "StaticBlock":
        this.block(node, node.body, scope);
        break;
      case "VariableDeclaration":
        for (const { id, init } of node.declarations)
          if (init !== null && init !== undefined) this.bind(id, this.value(init, scope), scope);
        break;
      case "FunctionDeclaration":
        if (node.id !== null) scope.find(node.id.name)?.add(shaped(this.functionOf(node, scope)));
        break;
      case "ClassDeclaration":
        if (node.id !== null) scope.find(node.id.name)?.add(this.classBody(node, scope));
        break;
      case "ReturnStatement":
        if (node.argument) this.giveBack(this.value(node.argument, scope), node.argument, scope);
        break;
      case "IfStatement":
        this.tested(node.test, scope, "if");
        this.statement(node.consequent, scope);
        if (node.alternate) this.statement(node.alternate, scope);
        break;
      case "WhileStatement":
      case "DoWhileStatement":
        this.tested(node.test, scope, node.type === "WhileStatement" ? "while" : "do while", "loop");
        this.statement(node.body, scope);
        break;
      case "ForStatement":
        this.forStatement(node, this.scopeOf(node, scope));
        break;
      case "ForInStatement":
      case "ForOfStatement":
        this.forEachStatement(node, this.scopeOf(node, scope));
        break;
      case "SwitchStatement":
        this.switchStatement(node, this.scopeOf(node, scope));
        break;
      case "ThrowStatement":
        this.value(node.argument, scope);
        break;
      case "TryStatement":
        this.tryStatement(node, scope);
        break;
      case "LabeledStatement":
        this.statement(node.body, scope);
        break;
      case "WithStatement":
        this.report("with", node, "with", ALWAYS);
        this.value(node.object, scope);
        this.statement(node.body, scope);
        break;
      case "ExportNamedDeclaration":
        if (node.declaration) this.statement(node.declaration, scope);
        break;
      case "ExportDefaultDeclaration":
        if (isFunction(node.declaration)) this.functionOf(node.declaration, scope);
        break;
      default:
    }
  }

  protected forStatement(node: Syntax & { type: "ForStatement" }, scope: Scope): void {
    if (node.init) {
      scope.declareBlock([node.init]);
      if (node.init.type === "VariableDeclaration") this.statement(node.init, scope);
      else this.value(node.init, scope);
    }
    if (node.test) this.tested(node.test, scope, "for", "loop");
    if (node.update) this.value(node.update, scope);
    this.statement(node.body, scope);
  }

  protected forEachStatement(node: Syntax & { type: "ForInStatement" | "ForOfStatement" }, scope: Scope): void {
    const over = this.value(node.right, scope);
    const isIn = node.type === "ForInStatement";
    this.report(isIn ? "keys" : "iteration", node.right, isIn ? "for in" : "for of", over.traced);
    scope.declareBlock([node.left]);
    const target = node.left.type === "VariableDeclaration" ? node.left.declarations[0]?.id : node.left;
    if (target !== undefined) this.bind(target, isIn ? PLAIN : this.elements(over), scope);
    this.statement(node.body, scope);
  }

  protected switchStatement(node: Syntax & { type: "SwitchStatement" }, scope: Scope): void {
    const on = this.value(node.discriminant, scope);
    this.report("switch", node.discriminant, "switch", this.identity(on));
    scope.declareBlock(node.cases.flatMap((it) => it.consequent));
    for (const { test, consequent } of node.cases) {
      if (test) this.report("switch", test, "case", this.value(test, scope).traced);
      for (const statement of consequent) this.statement(statement, scope);
    }
  }

  protected tryStatement(node: Syntax & { type: "TryStatement" }, scope: Scope): void {
    const outer = this.met;
    this.met = 0n;
    this.statement(node.block, scope);
    const inside = this.met;
    this.met |= outer;
    if (node.handler) {
      if (!throwsAgain(node.handler.body)) this.report("swallow", node, "catch", inside);
      const caught = this.scopeOf(node.handler, scope);
      if (node.handler.param) caught.declarePattern(node.handler.param);
      this.statement(node.handler.body, caught);
    }
    if (node.finalizer) this.statement(node.finalizer, scope);
  }

  protected giveBack(value: Value, node: Syntax, scope: Scope): void {
    scope.owner?.returns.add(value);
    if (scope.owner?.isPredicate) this.report("predicate", node, "predicate", value.traced);
  }

  protected walkFunctions(): void {
    for (const shape of this.functions.values()) this.walkFunction(shape);
  }

  protected walkFunction(shape: FunctionShape): void {
    const { node, outer, given } = shape;
    this.walked = node;
    const known = this.scopes.get(node);
    const scope = known ?? this.functionScope(shape, outer);
    if (known === undefined) this.scopes.set(node, scope);
    node.params.forEach((param, index) => this.bind(param, given[index]?.value ?? PLAIN, scope, true));
    if (node.type !== "ArrowFunctionExpression") scope.find("arguments")?.add(shaped(this.argumentsOf(shape)));
    if (node.body.type === "BlockStatement") this.block(node.body, node.body.body, scope);
    else this.giveBack(this.value(node.body, scope), node.body, scope);
  }

  protected functionScope(shape: FunctionShape, outer: Scope): Scope {
    const { node } = shape;
    const isLexical = node.type === "ArrowFunctionExpression" || outer.owner === undefined;
    const scope = new Scope(this, outer, shape, isLexical ? undefined : shape.self);
    if (node.type === "FunctionExpression" && node.id) scope.declare(node.id.name).add(shaped(shape));
    if (node.type !== "ArrowFunctionExpression") scope.declare("arguments");
    for (const param of node.params) scope.declarePattern(param);
    scope.declareVars(node.body);
    return scope;
  }

  protected argumentsOf(shape: FunctionShape): ContainerShape {
    const made = this.container("arguments", shape.node);
    for (const cell of [...shape.given, shape.extra]) made.elements.add(cell.value);
    return made;
  }

  override classBody(node: ClassSyntax, scope: Scope): Value {
    const made = this.classMembers(node, scope);
    if (node.superClass) this.inherit(node.superClass, made, this.value(node.superClass, scope));
    return made;
  }

  /** What a class has itself. */
  classMembers(node: ClassSyntax, scope: Scope): Value {
    // One container stands for the class and for all its objects.
    const made = this.container("object", node);
    const inner = new Scope(this, scope, scope.owner, shaped(made));
    for (const member of node.body.body) {
      if (member.type === "StaticBlock") {
        this.statement(member, inner);
        continue;
      }
      if (!member.value) continue;
      if (member.type === "MethodDefinition") this.heads.set(member.value, member.static ? member.key : member);
      const value = this.value(member.value, inner);
      const name = keyName(member.key, member.computed);
      if (member.type === "MethodDefinition" && member.kind === "set" && name !== undefined) {
        this.addSetter(made, name, value);
        continue;
      }
      const cell = name === undefined ? made.elements : this.named(made, name);
      for (const shape of value.shapes) if (shape.kind === "function") shape.self.add(shaped(made));
      cell.add(member.type === "MethodDefinition" && member.kind === "get" ? this.invoke(value, []) : value);
    }
    return shaped(made);
  }
}

/** Whether a handler throws whatever it caught, or at least the tracer's errors. */
function throwsAgain(body: Syntax & { type: "BlockStatement" }): boolean {
  return body.body.some((statement) => {
    if (statement.type === "ThrowStatement") return true;
    if (statement.type !== "IfStatement") return false;
    const { consequent, test } = statement;
    const inner = consequent.type === "BlockStatement" ? consequent.body[0] : consequent;
    const names = test.type === "BinaryExpression" && test.right.type === "Identifier" ? test.right.name : "";
    return inner?.type === "ThrowStatement" && (names === "TraceError" || names === "FxError");
  });
}
