/**
 * The kinds of recorded graphs that are checked, and the cases in which tracefx differs on purpose.
 *
 * @module
 */
import { checkCode } from "./codegen.mjs";
import { checkDce } from "./dce.mjs";
import { checkEditScript } from "./editScript.mjs";
import { checkInterpreter } from "./interpreter.mjs";
import { checkLint } from "./lint.mjs";
import { checkNamespace } from "./namespace.mjs";
import { checkNormalize } from "./normalize.mjs";
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
  normalize: checkNormalize,
  interpreter: checkInterpreter,
};

/**
 * Whether a case is one of its kind here. What PyTorch refused to trace has no graph; the tests of tracing have these cases.
 * @type {(kind: string, it: { code?: string }) => boolean}
 */
export function isCase(kind, { code }) {
  return kind !== "symbolic_trace" || code !== undefined;
}

/** Cases in which a returned node of the pattern stands nowhere in the graph, though another does. */
const MISSING_ANCHOR = [
  "matcher/t_chain4__two_outputs__001",
  "matcher/t_chain4__two_outputs__000",
  "matcher/t_chain4__two_outputs__011",
  "matcher/t_chain5__two_outputs__001",
  "matcher/t_chain5__two_outputs__000",
  "matcher/t_chain5__two_outputs__011",
  "matcher/t_same_input_twice__two_outputs__001",
  "matcher/t_same_input_twice__two_outputs__000",
  "matcher/t_leak__two_outputs__001",
  "matcher/t_leak__two_outputs__000",
  "matcher/t_leak_one_of_two__two_outputs__001",
  "matcher/t_leak_one_of_two__two_outputs__000",
  "matcher/t_output_used_many__two_outputs__001",
  "matcher/t_meth__two_outputs__001",
  "matcher/t_meth__two_outputs__000",
  "matcher/t_output_is_match__two_outputs__000",
  "matcher/t_literal_arg_node__two_outputs__000",
  "replace_pattern/t_chain4__two_outputs",
  "replace_pattern/t_chain5__two_outputs",
  "replace_pattern/t_same_input_twice__two_outputs",
  "replace_pattern/t_leak__two_outputs",
  "replace_pattern/t_output_used_many__two_outputs",
  "replace_pattern/t_output_is_match__two_outputs",
  "replace_pattern/t_literal_arg_node__two_outputs",
  "replace_pattern/random_6__two_outputs",
  "replace_pattern/random_24__two_outputs",
  "replace_pattern/random_42__two_outputs",
];

/**
 * Deliberate differences from PyTorch, by kind and case, with the reason; `docs/compat.md` has them too. Each of these cases
 * must differ: one that does not is no difference any more.
 * @type {Readonly<Record<string, string>>}
 */
export const DIFFERENCES = {
  "namespace/keywords":
    "PyTorch takes `None` for a free name, because the object that it keeps for that name stands for no object; " +
    "code generated from such a graph does not parse. Here the node is called None_1.",
  "lint/call_function_with_string_target":
    "PyTorch refuses a string as the target of call_function. Here a function is named by a string: its qualified name.",
  "cse/int_vs_float_literal_equal_merge":
    "PyTorch takes 1 and 1.0 for the same. What is computed of them differs in dtype.",
  "cse/bool_vs_int_literal_equal_merge": "PyTorch takes True and 1 for the same. Operators tell them apart.",
  "cse/zero_vs_negative_zero_merge":
    "PyTorch takes 0.0 and -0.0 for the same. Adding them to -0.0 gives different zeros.",
  "cse/slice_arg": "PyTorch fails on slices, which Python cannot hash. Here they are arguments like others.",
  ...Object.fromEntries(
    MISSING_ANCHOR.map((it) => [
      it,
      "PyTorch raises KeyError where a pattern of several values matches in part. Here it does not match.",
    ]),
  ),
  "symbolic_trace/f_intkey": "PyTorch's graphs hold dicts with any keys. Here the keys of a dict are strings.",
};
