/**
 * The files of tests that can differ where the host evaluates no text, as a page with a strict content security policy: those
 * that make code of text, and those that start a process or a worker, which might. The suite runs once where text is
 * evaluated, and only these run again where it is not, since everything else would do the same. A file that belongs here and
 * is missing fails (`hostCode.ts`).
 */
export const CAN_DIFFER: readonly string[] = [
  "ts/test/bundle.test.ts",
  "ts/test/cli/progress.test.ts",
  "ts/test/evaluate/evaluateCode.test.ts",
  "ts/test/evaluate/corpus.test.ts",
  "ts/test/engine/target.test.ts",
  "ts/test/faults/faults.test.ts",
  "ts/test/fx/programs.test.ts",
  "ts/test/hostCode.test.ts",
  "ts/test/lint/rule.test.ts",
  "ts/test/plugin/bundledPrograms.test.ts",
  "ts/test/plugin/bundlers.test.ts",
  "ts/test/plugin/register.test.ts",
  "ts/test/record/stack.test.ts",
  "ts/test/trace/sourceMaps.test.ts",
  "ts/test/types/z3.test.ts",
  "ts/test/worker/engineWorker.test.ts",
];

/** Of these, what does not run without: ESLint and webpack generate code themselves. */
export const NEEDS_EVAL: readonly string[] = [
  "ts/test/lint/rule.test.ts",
  "ts/test/plugin/bundlers.test.ts",
  "ts/test/plugin/bundledPrograms.test.ts",
];
