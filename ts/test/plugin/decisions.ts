/**
 * Everything that JavaScript can decide about a number or a tensor of an export, as expressions and statements over an input
 * `x` of 4 by 3, and how a module of one of them is written.
 *
 * @module
 */

/** What can be decided about sizes that are dynamic, and whether it holds of the example. */
const ABOUT_SIZES: Readonly<Record<string, string>> = {
  "===": "x.shape[0] === 4",
  "=== of another": "x.shape[0] === 7",
  "=== of two sizes": "x.shape[0] === x.shape[1]",
  "=== the other way round": "4 === x.size(0)",
  "=== a text": 'x.shape[0] === "4"',
  "=== true": "x.shape[0] === true",
  "!==": "x.shape[0] !== 4",
  "!== of another": "x.shape[0] !== 7",
  "==": "x.shape[0] == 4",
  "!=": "x.shape[0] != 4",
  switch: "(() => { switch (x.shape[0]) { case 3: return false; case 4: return true; default: return false; } })()",
  "switch (true)": "(() => { switch (true) { case x.shape[0] === 4: return true; default: return false; } })()",
  "case of a size": "(() => { switch (4) { case x.shape[0]: return true; default: return false; } })()",
  "includes in an array": "[4, 8].includes(x.shape[0])",
  "includes of the shape": "x.shape.includes(4)",
  "includes nothing": "x.shape.includes(7)",
  indexOf: "x.shape.indexOf(3) === 1",
  lastIndexOf: "x.shape.lastIndexOf(4) === 0",
  "indexOf of nothing": "x.shape.indexOf(7) < 0",
  "includes of a typed array": "new Int32Array([4, 8]).includes(x.shape[0])",
  "Set.has": "new Set([4, 8]).has(x.shape[0])",
  "Set.has of nothing": "new Set([7, 8]).has(x.shape[0])",
  "Set.add": "new Set([4]).add(x.shape[0]).size === 1",
  "a set of sizes": "new Set(x.shape).size === 2",
  "a set of parts": "new Set([4, x.shape[0]]).size === 1",
  "Set.delete": "new Set([4]).delete(x.shape[0])",
  "Map.get": "new Map([[4, true]]).get(x.shape[0])",
  "Map.has": "new Map([[4, true]]).has(x.shape[0])",
  "Map.set": "new Map([[4, 1]]).set(x.shape[0], 2).size === 1",
  "a map of sizes": "new Map([[4, 1], [x.shape[0], 2]]).size === 1",
  "Object.is": "Object.is(x.shape[0], 4)",
  "Object.is of another": "Object.is(7, x.shape[0])",
  typeof: 'typeof x.shape[0] === "number"',
  "typeof in a switch":
    '(() => { switch (typeof x.shape[0]) { case "number": return true; default: return false; } })()',
  "typeof of a tensor": 'typeof x === "object"',
  "Number.isInteger": "Number.isInteger(x.shape[0])",
  "Number.isNaN": "Number.isNaN(x.shape[0])",
  "every Number.isInteger": "x.shape.every(Number.isInteger)",
  "Array.isArray": "Array.isArray(x.shape[0])",
  "the length of an array": "new Array(x.shape[0]).length === 4",
  numel: "x.numel() === 12",
  "numel of another": "x.numel() === 8",
  stride: "x.stride(0) === 3",
  every: "x.shape.every((n) => n === 4 || n === 3)",
  filter: "x.shape.filter((n) => n === 4).length === 1",
  "filter(Boolean)": "x.shape.filter(Boolean).length === 2",
  some: "x.shape.some((n) => n === 4)",
  find: "x.shape.find((n) => n === 3) !== undefined",
  findIndex: "x.shape.findIndex((n) => n === 3) === 1",
  "??": "(x.shape[0] ?? 7) === 4",
  "?.": "x.shape?.[0] === 4",
  truth: "x.shape[0]",
  "!": "!x.shape[0]",
  "!!": "!!x.shape[0]",
  "Boolean()": "Boolean(x.shape[0])",
  "&&": "(x.shape[0] && 5) === 5",
  "||": "(x.shape[0] || 5) === 4",
  "?:": "(x.shape[0] ? 1 : 2) === 1",
  if: "(() => { if (x.shape[0]) return true; return false; })()",
  while: "(() => { while (x.shape[0] === 4) return true; return false; })()",
  "a method of a size": "x.shape[0] instanceof Object",
  "JSON.stringify of the shape": 'JSON.stringify(x.shape) === "[4,3]"',
  "JSON.stringify of a tensor": 'JSON.stringify(x) === "{}"',
  "the text of the shape": 'String(x.shape) === "4,3"',
  "the text of a size": 'x.shape[0].toString() === "4"',
  "a template": '`${x.shape[0]}` === "4"',
  "a key": "({ 4: true })[x.shape[0]]",
  "x.toString()": 'x.toString() === ""',
  "String(x)": 'String(x) === ""',
  "a template of a tensor": '`${x}` === ""',
  "toString.call": 'Object.prototype.toString.call(x.shape[0]) === "[object Number]"',
  "the class of a tensor": "x instanceof Tensor",
  "<": "x.shape[0] < 5",
  ">=": "x.shape[0] >= 5",
  "%": "x.shape[0] % 2 === 0",
  "+": "x.shape[0] + 1 === 5",
  "/": "x.shape[0] / 2 === 2",
  "Math.max": "Math.max(...x.shape) === 4",
  "a default": "(([n = 7]) => n === 4)(x.shape)",
  "dims are known": "x.dim() === 2",
  "a dtype is known": 'x.dtype === "float32"',
};

/** Unbacked numbers. */
const ABOUT_ELEMENTS: Readonly<Record<string, string>> = {
  "item() ===": "x.sum().item() === 12",
  "item() !==": "x.sum().item() !== 12",
  "item() of another": "x.sum().item() === 7",
  "item() in an array": "[12].includes(x.sum().item())",
  "item() in a set": "new Set([12]).has(x.sum().item())",
  "item() of a map": "new Map([[12, true]]).get(x.sum().item())",
  "item() in a switch": "(() => { switch (x.sum().item()) { case 12: return true; default: return false; } })()",
  "truth of item()": "x.sum().item()",
  "!item()": "!x.sum().item()",
  "Object.is of item()": "Object.is(x.sum().item(), 12)",
  "typeof item()": 'typeof x.sum().item() === "number"',
  "Number.isInteger of item()": "Number.isInteger(x.sum().item())",
  "an answer": "x.sum().gt(0).item() === true",
  "truth of an answer": "x.sum().gt(0).item()",
  "truth of a tensor": "x.sum()",
  "! of a tensor": "!x.sum()",
  "=== of tensors": "x === x.add(0)",
  "includes a tensor": "[x].includes(x.add(0))",
  "a comparison of tensors": "x.sum().gt(0)",
};

/** All of them, by name. */
export const DECISIONS: Readonly<Record<string, string>> = { ...ABOUT_SIZES, ...ABOUT_ELEMENTS };

/** A module that decides in its `forward`. */
const IN_FORWARD = (expression: string): string => `class extends nn.Module {
  forward(x) {
    return ${expression} ? x.add(1) : x.mul(3);
  }
}`;

/** A module that decides in a method of an object that nobody reaches but through a value. */
const IN_A_METHOD = (expression: string): string => `(() => {
  class Chooser {
    choose(x) {
      return ${expression} ? x.add(1) : x.mul(3);
    }
  }
  return class extends nn.Module {
    choosers = new Map([["a", new Chooser()]]);
    forward(x) {
      const { choosers } = this;
      return [...choosers.values()].map((it) => it.choose(x))[0];
    }
  };
})()`;

/** Where a decision stands, and how a module that makes it there is written. */
export const PLACES: Readonly<Record<string, (expression: string) => string>> = {
  "in forward": IN_FORWARD,
  "in a method of an object that is reached through a value": IN_A_METHOD,
};

/** What is refused of sizes although the example would tell: texts, keys, and what holds numbers by identity. */
const TOLD_OF_SIZES = [
  "case of a size",
  "Set.add",
  "a set of sizes",
  "a set of parts",
  "Map.set",
  "a map of sizes",
  "the length of an array",
  "JSON.stringify of the shape",
  "JSON.stringify of a tensor",
  "the text of the shape",
  "the text of a size",
  "a template",
  "a key",
  "x.toString()",
  "String(x)",
  "a template of a tensor",
  "Math.max",
  // Guards know whole numbers only.
  "/",
];

/** What is refused unless operators are recorded. */
const TOLD_OF_OPERATORS = ["<", ">=", "%", "+"];

/** What is known of elements without knowing them. */
const KNOWN_OF_ELEMENTS = ["typeof item()"];

/** Whether a decision is refused where every condition is looked at; else it is right, for other inputs by a guard. */
export function isTold(name: string, place: string, operators: boolean): boolean {
  if (TOLD_OF_SIZES.includes(name) || (!operators && TOLD_OF_OPERATORS.includes(name))) return true;
  // The check of sources takes the part of a shape for one that may be left out.
  if (name === "a default" && place === "in forward") return true;
  return name in ABOUT_ELEMENTS && !KNOWN_OF_ELEMENTS.includes(name);
}
