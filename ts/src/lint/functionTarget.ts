/**
 * The lint rule `tracefx/no-function-target`.
 *
 * The target of a node is the name of a function, and each function of the package has its name under `target`. A comparison
 * with the function itself, as Python has it, is never true. TypeScript refuses it; this rule says so in JavaScript, and of sets
 * and lists.
 *
 * @module
 */
import type { AnyNode, Program } from "acorn";
import { bare, extent, keyName, snippet } from "../trace/analysis/syntax.ts";
import { all, importsOf, nameOf } from "./file.ts";
import type { RuleContext, RuleModule } from "./rule.ts";

/** The rule. */
export const noFunctionTarget: RuleModule = {
  meta: {
    type: "problem",
    docs: {
      description: "Disallow comparing a node's target with a function, which is never equal to its name",
      url: "https://github.com/tracefx/tracefx/blob/main/docs/coming-from-torch-fx.md",
    },
    fixable: "code",
    messages: { never: "A target is the name of a function, so it is never `{{given}}`: write `{{given}}.target`." },
    schema: [],
    defaultOptions: [],
  },
  create(context) {
    return {
      Program(program) {
        for (const fn of comparedFunctions(program as Program)) report(fn, context);
      },
    };
  },
};

function report(fn: AnyNode, context: RuleContext): void {
  const [start, end] = extent(fn);
  const loc = fn.loc ?? undefined;
  if (loc === undefined) return;
  context.report({
    loc,
    messageId: "never",
    data: { given: snippet(context.sourceCode.text, fn) },
    fix: (fixer) => fixer.insertTextAfterRange([start, end], ".target"),
  });
}

const EQUALITIES = new Set(["===", "!==", "==", "!="]);
/** The methods that ask whether a value is among others. */
const LOOKUPS = new Set(["includes", "has", "indexOf"]);

/** The functions that targets are compared with. */
function comparedFunctions(program: Program): Set<AnyNode> {
  const nodes = [...all(program)];
  const own = importsOf(nodes);
  const lists = listsOf(nodes);
  const isFunction = (node: AnyNode): boolean => {
    const it = bare(node);
    const [name, root] = nameOf(it);
    // Whatever is not written out has no name.
    return it.type === "MemberExpression" && name !== "" && name !== "target" && (own.has(root) || root === "torch");
  };
  const among = (node: AnyNode): readonly AnyNode[] => {
    const it = bare(node);
    return elementsOf(it.type === "Identifier" ? (lists.get(it.name) ?? it) : it);
  };
  const res = new Set<AnyNode>();
  const add = (given: readonly AnyNode[]): void => {
    for (const it of given) if (isFunction(it)) res.add(bare(it));
  };
  for (const node of nodes) {
    if (node.type === "BinaryExpression" && EQUALITIES.has(node.operator)) {
      if (isTarget(node.left)) add([node.right]);
      if (isTarget(node.right)) add([node.left]);
    } else if (node.type === "SwitchStatement" && isTarget(node.discriminant)) {
      add(node.cases.flatMap((it) => it.test ?? []));
    } else if (node.type === "CallExpression") {
      const callee = bare(node.callee);
      const [first] = node.arguments;
      if (callee.type !== "MemberExpression" || first === undefined || !isTarget(first)) continue;
      if (LOOKUPS.has(keyName(callee.property, callee.computed) ?? "")) add(among(callee.object));
    }
  }
  return res;
}

/** The target of a node, or a variable of that name. */
function isTarget(node: AnyNode): boolean {
  const it = bare(node);
  if (it.type === "Identifier") return it.name === "target";
  return it.type === "MemberExpression" && keyName(it.property, it.computed) === "target" && !isOfFunction(it.object);
}

/** Whether `torch.relu.target` is meant, which is no target of a node. */
function isOfFunction(node: AnyNode): boolean {
  const it = bare(node);
  return it.type === "MemberExpression" && nameOf(it)[1] === "torch";
}

/** The lists and sets that variables are declared with; none of a name that is declared twice. */
function listsOf(nodes: readonly AnyNode[]): Map<string, AnyNode> {
  const seen = new Set<string>();
  const res = new Map<string, AnyNode>();
  for (const node of nodes) {
    if (node.type !== "VariableDeclarator" || node.id.type !== "Identifier" || !node.init) continue;
    const { name } = node.id;
    if (seen.has(name)) res.delete(name);
    else res.set(name, bare(node.init));
    seen.add(name);
  }
  return res;
}

/** What is in a list, or in a set that is made of one. */
function elementsOf(node: AnyNode): readonly AnyNode[] {
  if (node.type === "ArrayExpression") return node.elements.filter((it) => it !== null);
  if (node.type !== "NewExpression" || nameOf(bare(node.callee))[0] !== "Set") return [];
  const [first] = node.arguments;
  return first === undefined ? [] : elementsOf(bare(first));
}
