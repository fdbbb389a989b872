/**
 * The kinds of recorded graphs that are checked, and the cases in which tracefx differs on purpose.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { checkCode } from "./codegen.mjs";
import { checkConstFold } from "./constFold.mjs";
import { checkCse } from "./cse.mjs";
import { checkDce } from "./dce.mjs";
import { checkEditScript } from "./editScript.mjs";
import { checkExport } from "./export.mjs";
import { checkFunctionalize } from "./functionalize.mjs";
import { checkInterpreter } from "./interpreter.mjs";
import { checkLint } from "./lint.mjs";
import { checkMatcher } from "./matcher.mjs";
import { checkNamespace } from "./namespace.mjs";
import { checkNormalize } from "./normalize.mjs";
import { checkPartitioner } from "./partitioner.mjs";
import { checkSplitModule } from "./splitModule.mjs";
import { checkReplacePattern } from "./replacePattern.mjs";
import { checkTopo } from "./topo.mjs";

/**
 * For each kind what checks a case: it throws where something differs from what was recorded.
 * @type {Readonly<Record<string, (it: any) => void | Promise<void>>>}
 */
export const KINDS = {
  edit_script: checkEditScript,
  namespace: checkNamespace,
  lint: checkLint,
  topo: checkTopo,
  codegen: checkCode,
  symbolic_trace: checkCode,
  dce: checkDce,
  cse: checkCse,
  functionalize: checkFunctionalize,
  normalize: checkNormalize,
  interpreter: checkInterpreter,
  split_module: checkSplitModule,
  partitioner: checkPartitioner,
  const_fold: checkConstFold,
  matcher: checkMatcher,
  replace_pattern: checkReplacePattern,
  export: checkExport,
};

/**
 * Whether a case is one of its kind here. What PyTorch refused to trace has no graph; the tests of tracing have these cases.
 * @type {(kind: string, it: { code?: string }) => boolean}
 */
export function isCase(kind, { code }) {
  return kind !== "symbolic_trace" || code !== undefined;
}

/**
 * Deliberate differences from PyTorch, by kind and case, with the reason; `docs/compat.md` has them too. Each of these cases
 * must differ: one that does not is no difference any more.
 * @type {Readonly<Record<string, string>>}
 */
export const DIFFERENCES = JSON.parse(readFileSync(new URL("differences.json", import.meta.url), "utf8"));
