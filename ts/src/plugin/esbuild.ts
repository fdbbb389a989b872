/**
 * The build plugin for esbuild.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { type PluginOptions, plugin } from "./plugin.ts";

export type { Files, PluginOptions } from "./plugin.ts";

/** The plugin for esbuild; see {@link PluginOptions}. */
export const tracefx: (options?: PluginOptions) => Plugin = plugin.esbuild;
