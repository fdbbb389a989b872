/**
 * What the analysis finds: where JavaScript would decide something about a traced value that no trace can see.
 *
 * Each kind is one row of a table: its code, what happens, and what to write instead.
 *
 * @module
 */
import type { ErrorName } from "../../../../bindings/errors.ts";
import type { Sources } from "./value.ts";

/** A row of the table: what is wrong with a construct. */
interface FindingRule {
  /** The kind of error that it becomes. */
  readonly error: ErrorName;
  /**
   * How it is met while tracing: `unseen` can only be found in the source, `seen` throws by itself when it is reached,
   * `note` is no error.
   */
  readonly level: "unseen" | "seen" | "note";
  /** What the construct does. */
  readonly says: string;
  /** What to write instead. */
  readonly help: string;
}

/** What decides on a size that is dynamic. */
const GUARD =
  "while a module is exported, guard(operator.eq(x.size(0), 4)) decides on a size, for all inputs of the program";

const CHOOSE =
  "choose between values with torch.where(condition, a, b), record both branches with cond(condition, whenTrue, whenFalse, [inputs]), " +
  `or fix the value with symbolicTrace(fn, { concreteArgs: { name: value } }); ${GUARD}`;

/** The kinds of findings. */
export const FINDINGS = {
  test: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks whether a traced value is true; JavaScript always says yes, and the other branch would be lost",
    help: CHOOSE,
  },
  loop: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "repeats for as long as a traced value is true, which a trace cannot know",
    help: `record the loop with whileLoop(condition, body, [inputs]), or loop a number of times that is known when tracing; ${GUARD}`,
  },
  predicate: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "keeps or finds elements by a traced value; JavaScript takes every traced value as true",
    help: `choose the elements by something that is known when tracing, or mask them with torch.where(condition, a, b); ${GUARD}`,
  },
  assertion: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asserts a traced value; JavaScript takes every traced value as true, and nothing is recorded",
    help: "record the check with torch._assert(condition, message)",
  },
  comparison: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "compares a traced value by identity, which is decided while tracing and not recorded",
    help:
      "compare elements with x.eq(y) or x.ne(y) and choose with torch.where; " +
      `an argument that is no tensor is given with symbolicTrace(fn, { concreteArgs: { name: value } }); ${GUARD}`,
  },
  switch: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "switches on a traced value, which equals no case",
    help: `an argument that is no tensor is given with symbolicTrace(fn, { concreteArgs: { name: value } }); ${GUARD}`,
  },
  nullish: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks whether a value that may be null is there; the traced value in its place always is",
    help:
      "say that it is not there with symbolicTrace(fn, { concreteArgs: { name: null } }), " +
      "or make a second function for when it is there, without the default",
  },
  absent: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks whether a part of a traced value is there; a traced value has every part",
    help: "read the part without asking, or give the structure with symbolicTrace(fn, { concreteArgs })",
  },
  default: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "has a default for a part of a traced value; a traced value has every part, so the default is never taken",
    help: "take the part without a default, or give the structure with symbolicTrace(fn, { concreteArgs })",
  },
  typeof: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks for the type of a traced value, and gets that of the stand-in",
    help: "an argument that is no tensor is given with symbolicTrace(fn, { concreteArgs: { name: value } })",
  },
  instanceof: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks for the class of a traced value, and gets that of the stand-in",
    help: "an argument that is no tensor is given with symbolicTrace(fn, { concreteArgs: { name: value } }); `instanceof Proxy` asks whether something is being traced",
  },
  membership: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "looks for a traced value by identity, which is decided while tracing and not recorded",
    help: `compare with x.eq(y) and combine with logicalOr, or use torch.isin(x, values); ${GUARD}`,
  },
  key: {
    error: "TraceCoercion",
    level: "seen",
    says: "uses a traced value as a key, and no traced value is a name or a number",
    help: "select from a tensor with torch.indexSelect(table, 0, index), or give the key with symbolicTrace(fn, { concreteArgs })",
  },
  keys: {
    error: "TraceIteration",
    level: "seen",
    says: "lists the keys of a traced value, and those of the stand-in say nothing",
    help: "name the parts that are meant, or give the structure with symbolicTrace(fn, { concreteArgs })",
  },
  own: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "asks what a traced value is made of, and gets what the stand-in is made of",
    help: "name the parts that are meant, or give the structure with symbolicTrace(fn, { concreteArgs })",
  },
  number: {
    error: "TraceCoercion",
    level: "unseen",
    says: "asks a question about a number; a traced value is none, so the answer is always no",
    help: "use torch.isnan(x), torch.isfinite(x) or another function that is recorded",
  },
  length: {
    error: "TraceIteration",
    level: "unseen",
    says: "makes an array whose length would be a traced value, and gets an array that holds it",
    help: "give the length with symbolicTrace(fn, { concreteArgs: { name: value } })",
  },
  serialise: {
    error: "TraceUnsupported",
    level: "seen",
    says: "copies or writes a traced value, and gets something that is not recorded",
    help: "return the value from the traced function, and write it after the traced program has run",
  },
  swallow: {
    error: "TraceUnsupported",
    level: "unseen",
    says: "catches the errors of traced code, also those of the tracer; only what happens without an error is recorded",
    help: "move the `try` outside of the traced function, or throw again: catch (error) { if (error instanceof TraceError) throw error; … }",
  },
  state: {
    error: "TraceUnsupported",
    level: "unseen",
    says: "keeps a traced value in the module; the graph has no such assignment, and a second run would not see it",
    help: "return the value, or write it into a registered buffer in place: this.state.copy_(value)",
  },
  async: {
    error: "TraceUnsupported",
    level: "unseen",
    says: "is asynchronous, and its traced value would be a promise",
    help: "await what is needed before tracing, and trace a function that is not async",
  },
  generator: {
    error: "TraceUnsupported",
    level: "unseen",
    says: "is a generator, which runs only when its result is walked",
    help: "return an array of the values",
  },
  arguments: {
    error: "TraceControlFlow",
    level: "unseen",
    says: "counts the arguments; a trace gives all of them, so the other counts would be lost",
    help: "write the parameters with their defaults, and give those that decide something with concreteArgs",
  },
  with: {
    error: "TraceUnsupported",
    level: "unseen",
    says: "looks names up in an object, so that nobody can say which values are traced",
    help: "name the object: object.name",
  },
  operator: {
    error: "TraceCoercion",
    level: "seen",
    says: "would turn a traced value into a number",
    help: "call the method: x.add(y), x.mul(y), x.neg(), x.lt(y); or build with tracefx/plugin and { operators: true }",
  },
  string: {
    error: "TraceCoercion",
    level: "seen",
    says: "would turn a traced value into text or a number",
    help: "print the value after the traced program has run",
  },
  iteration: {
    error: "TraceIteration",
    level: "seen",
    says: "walks over a traced value, and nobody knows how long it is",
    help: "destructure as many as there are: const [a, b] = x; or loop over a length that is known when tracing",
  },
  size: {
    error: "TraceIteration",
    level: "seen",
    says: "asks how long a traced value is, which a trace cannot know",
    help: "use x.size(0), which is recorded",
  },
  write: {
    error: "TraceUnsupported",
    level: "seen",
    says: "assigns to or deletes a part of a traced value, which is not recorded",
    help: "make a new value: torch.indexPut, x.sliceScatter, x.selectScatter or torch.where",
  },
  eval: {
    error: "TraceUnsupported",
    level: "note",
    says: "runs text as code, which the analysis cannot read",
    help: "write the code out",
  },
  random: {
    error: "TraceUnsupported",
    level: "note",
    says: "gives one number when tracing, and the graph has that number for ever",
    help: "use torch.rand(…), which is recorded, or give the number as an argument",
  },
  clock: {
    error: "TraceUnsupported",
    level: "note",
    says: "gives one time when tracing, and the graph has that time for ever",
    help: "give the time as an argument, or read it outside of the traced function",
  },
  counter: {
    error: "TraceUnsupported",
    level: "note",
    says: "changes something outside of the function when tracing; the graph has the value of that moment, and changes nothing",
    help: "count in a registered buffer in place, this.count.add_(1), or outside of the traced function",
  },
  leak: {
    error: "TraceUnsupported",
    level: "note",
    says: "gives a traced value to a variable outside of the function; the graph has no such assignment",
    help: "return the value",
  },
} as const satisfies Record<string, FindingRule>;

/** The name of a kind of finding. */
export type FindingKind = keyof typeof FINDINGS;

/** One place of a function where something is decided that a trace cannot see. */
export interface Finding {
  readonly kind: FindingKind;
  /** The construct, as a reader calls it: `if`, `&&`, `===`, `filter`. */
  readonly construct: string;
  /** The source text. */
  readonly snippet: string;
  /** The line, from 1, in the text that was analysed. */
  readonly line: number;
  /** The column, from 1. */
  readonly column: number;
  /** The line where it ends. */
  readonly endLine: number;
  /** The column where it ends. */
  readonly endColumn: number;
  /** The sources of the traced value: the finding counts if one of them is traced. */
  readonly sources: Sources;
}

/** How a construct reads around the value that it asks about. */
const AROUND: Readonly<Record<string, (value: string) => string>> = {
  if: (value) => `if (${value})`,
  while: (value) => `while (${value})`,
  "do while": (value) => `do … while (${value})`,
  for: (value) => `for (…; ${value}; …)`,
  "for of": (value) => `for (… of ${value})`,
  "for in": (value) => `for (… in ${value})`,
  switch: (value) => `switch (${value})`,
  case: (value) => `case ${value}:`,
  "!": (value) => `!${value}`,
  "?:": (value) => `${value} ? … : …`,
  "&&": (value) => `${value} && …`,
  "||": (value) => `${value} || …`,
  "??": (value) => `${value} ?? …`,
  "?.": (value) => `${value}?.`,
  "&&=": (value) => `${value} &&= …`,
  "||=": (value) => `${value} ||= …`,
  "??=": (value) => `${value} ??= …`,
  predicate: (value) => `=> ${value}`,
};

/** A finding in one sentence: what happens where. */
export function describeFinding({ kind, construct, snippet }: Finding): string {
  return `\`${AROUND[construct]?.(snippet) ?? snippet}\` ${FINDINGS[kind].says}`;
}
