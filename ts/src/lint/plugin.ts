/**
 * The plugin for ESLint and oxlint.
 *
 * @example
 * ```ts
 * // eslint.config.js
 * import tracefx from "tracefx/eslint-plugin";
 * export default [tracefx.configs.recommended];
 * ```
 *
 * ```json
 * // .oxlintrc.json
 * {
 *   "jsPlugins": ["tracefx/eslint-plugin"],
 *   "rules": { "tracefx/no-untraceable": "error", "tracefx/no-function-target": "error" }
 * }
 * ```
 * @module
 */
import { noFunctionTarget } from "./functionTarget.ts";
import { noUntraceable, type RuleModule } from "./rule.ts";

export type { RuleContext, RuleModule } from "./rule.ts";

/** The rules of the plugin. */
interface Rules {
  readonly "no-untraceable": RuleModule;
  readonly "no-function-target": RuleModule;
}

/** A plugin for ESLint's flat configuration. */
export interface LintPlugin {
  readonly meta: { readonly name: "tracefx" };
  readonly rules: Rules;
  readonly configs: { readonly recommended: LintConfig };
}

/** An entry of ESLint's flat configuration. */
export interface LintConfig {
  readonly name: string;
  readonly plugins: { readonly tracefx: LintPlugin };
  readonly rules: { readonly "tracefx/no-untraceable": "error"; readonly "tracefx/no-function-target": "error" };
}

/** The plugin. */
export const tracefx: LintPlugin = {
  meta: { name: "tracefx" },
  rules: { "no-untraceable": noUntraceable, "no-function-target": noFunctionTarget },
  configs: {
    get recommended(): LintConfig {
      const rules = { "tracefx/no-untraceable": "error", "tracefx/no-function-target": "error" } as const;
      return { name: "tracefx/recommended", plugins: { tracefx }, rules };
    },
  },
};

// oxlint-disable-next-line import/no-default-export -- linters take the plugin from there
export default tracefx;
