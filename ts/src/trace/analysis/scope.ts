/**
 * The variables of a function, and of the blocks and functions in it.
 *
 * @module
 */
import { children, isFunction, type Syntax } from "./syntax.ts";
import { Cell, type Clock, type FunctionShape, PLAIN, type Value } from "./value.ts";

/** The names that are declared in one block or function. */
export class Scope {
  readonly outer: Scope | undefined;
  /** The function that the scope is in; undefined around all functions. */
  readonly owner: FunctionShape | undefined;
  readonly #cells = new Map<string, Cell>();
  readonly #clock: Clock;
  readonly #self: Value | Cell | undefined;

  constructor(clock: Clock, outer?: Scope, owner = outer?.owner, self?: Value | Cell) {
    this.#clock = clock;
    this.outer = outer;
    this.owner = owner;
    this.#self = self;
  }

  /** What `this` is. */
  get self(): Value {
    if (this.#self === undefined) return this.outer?.self ?? PLAIN;
    return this.#self instanceof Cell ? this.#self.value : this.#self;
  }

  /** The variable of this scope with that name, which is made if need be. */
  declare(name: string): Cell {
    const known = this.#cells.get(name);
    if (known !== undefined) return known;
    const cell = new Cell(this.#clock);
    this.#cells.set(name, cell);
    return cell;
  }

  /** The variable that a name stands for here; undefined if it is declared outside of what is analysed. */
  find(name: string): Cell | undefined {
    return this.#cells.get(name) ?? this.outer?.find(name);
  }

  /** Whether a name stands for a variable that is declared outside of all functions of what is analysed, or nowhere in it. */
  isOutside(name: string): boolean {
    if (this.#cells.has(name)) return this.owner === undefined;
    return this.outer?.isOutside(name) ?? true;
  }

  /** Declares the names that a pattern binds: a parameter, or what is caught. */
  declarePattern(pattern: Syntax): void {
    for (const name of boundNames(pattern)) this.declare(name);
  }

  /** Declares what the statements of a block declare for the whole block. */
  declareBlock(statements: readonly Syntax[]): void {
    for (const statement of statements) {
      const it = statement.type === "ExportNamedDeclaration" ? (statement.declaration ?? statement) : statement;
      if (it.type === "VariableDeclaration") {
        for (const declarator of it.declarations) this.declarePattern(declarator.id);
      } else if ((it.type === "FunctionDeclaration" || it.type === "ClassDeclaration") && it.id !== null) {
        this.declare(it.id.name);
      }
    }
  }

  /** Declares what `var` declares anywhere in a function's body. */
  declareVars(node: Syntax): void {
    if (node.type === "VariableDeclaration" && node.kind === "var")
      for (const declarator of node.declarations) this.declarePattern(declarator.id);
    for (const child of children(node)) if (!isFunction(child)) this.declareVars(child);
  }
}

/** The names that a pattern binds. */
export function* boundNames(pattern: Syntax): Generator<string> {
  switch (pattern.type) {
    case "Identifier":
      yield pattern.name;
      break;
    case "AssignmentPattern":
      yield* boundNames(pattern.left);
      break;
    case "RestElement":
      yield* boundNames(pattern.argument);
      break;
    case "ArrayPattern":
      for (const element of pattern.elements) if (element !== null) yield* boundNames(element);
      break;
    case "ObjectPattern":
      for (const property of pattern.properties)
        yield* boundNames(property.type === "RestElement" ? property : property.value);
      break;
    default:
      // TypeScript's parameter properties stand around the parameter.
      if ("parameter" in pattern) yield* boundNames(pattern.parameter as Syntax);
  }
}
