/**
 * The build plugin for Rollup.
 *
 * @module
 */
import type { Plugin } from "rollup";
import { type PluginOptions, plugin } from "./plugin.ts";

export type { Files, PluginOptions } from "./plugin.ts";

/** The plugin for Rollup; see {@link PluginOptions}. */
export const tracefx: (options?: PluginOptions) => Plugin = plugin.rollup;
