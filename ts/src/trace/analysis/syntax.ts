/**
 * The syntax trees that the analysis reads.
 *
 * They are ESTree, as acorn makes them at run time and as ESLint's parsers make them for the lint rule. A parser for
 * TypeScript adds nodes of its own; those that stand around an expression are looked through, types are never read.
 *
 * @module
 */
import type {
  AnonymousClassDeclaration,
  AnyNode,
  ArrowFunctionExpression,
  ClassDeclaration,
  ClassExpression,
  FunctionDeclaration,
  FunctionExpression,
} from "acorn";

/** A node of any kind. */
export type Syntax = AnyNode;

/** A node that is a function. */
export type FunctionSyntax = FunctionExpression | ArrowFunctionExpression | FunctionDeclaration;

/** A node that is a class. */
export type ClassSyntax = ClassDeclaration | ClassExpression | AnonymousClassDeclaration;

const WRAPPERS = new Set<string>([
  "ChainExpression",
  "ParenthesizedExpression",
  "TSAsExpression",
  "TSSatisfiesExpression",
  "TSNonNullExpression",
  "TSTypeAssertion",
  "TSInstantiationExpression",
]);

/** The expression without the parentheses, optional chains and TypeScript assertions around it. */
export function bare(node: Syntax): Syntax {
  let it = node;
  while (WRAPPERS.has(it.type) && "expression" in it && typeof it.expression === "object") it = it.expression;
  return it;
}

/** Whether the node is a function. */
export function isFunction(node: Syntax): node is FunctionSyntax {
  return (
    node.type === "FunctionExpression" ||
    node.type === "ArrowFunctionExpression" ||
    (node.type === "FunctionDeclaration" && node.id !== null)
  );
}

/** Whether the expression is written as `null`, `undefined` or `void 0`. */
export function isNullish(node: Syntax): boolean {
  const it = bare(node);
  if (it.type === "Literal") return it.raw === "null";
  if (it.type === "Identifier") return it.name === "undefined";
  return it.type === "UnaryExpression" && it.operator === "void";
}

/** The name of a member or key that is written out, else undefined. */
export function keyName(key: Syntax, computed: boolean): string | undefined {
  if (!computed && key.type === "Identifier") return key.name;
  if (key.type === "PrivateIdentifier") return `#${key.name}`;
  if (key.type === "Literal" && (typeof key.value === "string" || typeof key.value === "number"))
    return String(key.value);
  if (key.type === "TemplateLiteral" && key.expressions.length === 0) return key.quasis[0]?.value.cooked ?? undefined;
  return undefined;
}

/** The nodes directly under a node, in the order of the source. */
export function* children(node: Syntax): Generator<Syntax> {
  for (const key in node) {
    if (key === "parent" || key === "loc" || key === "range") continue;
    const value: unknown = node[key as keyof Syntax];
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      for (const it of value) if (isSyntax(it)) yield it;
    } else if (isSyntax(value)) yield value;
  }
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Where a node starts and ends in the text that was parsed. */
export function extent(node: Syntax): readonly [number, number] {
  return node.range ?? [node.start, node.end];
}

/** The source text of a node on one line, shortened to what fits in a message. */
export function snippet(source: string, node: Syntax, limit = 60): string {
  const text = source
    .slice(...extent(node))
    .replace(/\s+/g, " ")
    .trim();
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}
