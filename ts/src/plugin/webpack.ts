/**
 * The build plugin for webpack.
 *
 * @module
 */
import type { WebpackPluginInstance } from "webpack";
import { type PluginOptions, plugin } from "./plugin.ts";

export type { Files, PluginOptions } from "./plugin.ts";

/** The plugin for webpack; see {@link PluginOptions}. */
export const tracefx: (options?: PluginOptions) => WebpackPluginInstance = plugin.webpack;
