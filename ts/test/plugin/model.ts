/**
 * A small model, as users write it.
 *
 * @module
 */

/** Its source in JavaScript. */
export const MODEL = `import { PH, symbolicTrace } from "tracefx";

const chosen = (x) => {
  const y = x.relu();
  if (y) return y;
  return x;
};

const same = (x, y) => x === y;

const absent = (x, mask = null) => (mask === null ? x : mask);

const computed = (x, y) => {
  let z = -x + 2 * y;
  z **= 2;
  return [z, z < x, 1 + 2, "a" + 1];
};

/** Ordinary code, of which every test is on a plain value. */
const ordinary = (x, n) => {
  const mode = n === 3 && !false ? "a" : "b";
  return mode === "a" ? x : x.relu();
};

const traces = { chosen, same, absent, computed, ordinary };

const tell = (fn) => {
  try {
    return \`\${symbolicTrace(fn, fn === ordinary ? { concreteArgs: [PH, 3] } : {}).graph}\`;
  } catch (error) {
    return \`\${error.kind}: \${error.message}\`;
  }
};

console.log(JSON.stringify(Object.fromEntries(Object.entries(traces).map(([name, fn]) => [name, tell(fn)]))));
`;

/** The same in TypeScript. */
export const TYPED_MODEL: string = MODEL.replaceAll("(x, ", "(x: unknown, ").replaceAll(
  "(x)",
  "(x: { relu(): unknown })",
);
