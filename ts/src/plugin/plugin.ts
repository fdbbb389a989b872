/**
 * The build plugin: makes tests on traced values visible, and operators on tensors, for Vite, Rollup, esbuild, webpack
 * and the others that unplugin serves.
 *
 * @example
 * ```ts
 * // vite.config.ts
 * import { tracefx } from "tracefx/plugin/vite";
 * export default { plugins: [tracefx({ operators: true })] };
 * ```
 * @module
 */
import remapping from "@jridgewell/remapping";
import type { BuildOptions, PluginBuild, TransformOptions } from "esbuild";
import { createUnplugin, type UnpluginInstance } from "unplugin";
import { rewrite } from "./rewrite.ts";
import { checkOptions } from "../base/given.ts";

export { type ModuleFormat, type RewriteOptions, type Rewritten, rewrite, type Runtime } from "./rewrite.ts";

/** Which files, by glob, path or regular expression. */
export type Files = string | RegExp | (string | RegExp)[];

/** How the plugin rewrites. */
export interface PluginOptions {
  /** The files to rewrite. By default all that import tracefx. */
  readonly include?: Files;
  /** The files to leave alone. By default those in `node_modules`. */
  readonly exclude?: Files;
  /**
   * Whether `x + y`, `-x`, `x < y` and the other operators work on tensors and traced values. On anything else they do
   * what they do in JavaScript.
   */
  readonly operators?: boolean;
}

/** A file that imports tracefx, in any of the ways that there are. */
const IMPORTS = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["']tracefx(?:\/[^"']*)?["']/;

const SCRIPT = /\.[cm]?[jt]sx?(?:\?|$)/;

/** What has to be turned into JavaScript before it can be read. */
const TYPED = /\.(?:[cm]?ts|[jt]sx)$/;

/** The plugin for every bundler: `plugin.vite()`, `plugin.rollup()` and so on. */
export const plugin: UnpluginInstance<PluginOptions | undefined, false> = createUnplugin((options) => {
  const { include, exclude = /[\\/]node_modules[\\/]/, operators = false } = checked(options ?? {});
  let esbuild: PluginBuild | undefined;
  return {
    name: "tracefx",
    enforce: "post",
    esbuild: {
      setup(build) {
        esbuild = build;
      },
    },
    transform: {
      filter: { id: { include: include ?? SCRIPT, exclude } },
      async handler(code, file) {
        if (include === undefined && !IMPORTS.test(code)) return undefined;
        try {
          const script = esbuild === undefined ? { code } : await plainScript(esbuild, code, file);
          const done = rewrite(script.code, { id: file, operators });
          if (done === undefined || script.map === undefined) return done;
          return { code: done.code, map: String(remapping([String(done.map), script.map], () => null)) };
        } catch (error) {
          if (!(error instanceof SyntaxError)) throw error;
          this.warn(`tracefx leaves ${file} as it is, because it is no JavaScript yet: ${error.message}`);
          return undefined;
        }
      },
    },
  };
});

/**
 * esbuild takes types and JSX away after all plugins have run, so the plugin has it done first, with esbuild's own
 * transform and the options of the build.
 */
async function plainScript(build: PluginBuild, code: string, file: string): Promise<{ code: string; map?: string }> {
  const path = file.replace(/\?.*$/, "");
  return TYPED.test(path) ? build.esbuild.transform(code, transformOptions(path, build.initialOptions)) : { code };
}

function transformOptions(path: string, options: BuildOptions): TransformOptions {
  const { jsx, jsxFactory, jsxFragment, jsxImportSource, jsxDev, tsconfigRaw } = options;
  const given = { jsx, jsxFactory, jsxFragment, jsxImportSource, jsxDev, tsconfigRaw };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const loader = path.endsWith("x") ? (path.endsWith("tsx") ? "tsx" : "jsx") : "ts";
  return { ...set, loader, format: "esm", target: "esnext", sourcefile: path, sourcemap: "external" };
}

function checked(options: PluginOptions): PluginOptions {
  checkOptions("the plugin", options, ["include", "exclude", "operators"]);
  return options;
}
