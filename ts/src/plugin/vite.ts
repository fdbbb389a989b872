/**
 * The build plugin for Vite.
 *
 * @module
 */
import type { Plugin } from "vite";
import { type PluginOptions, plugin } from "./plugin.ts";

export type { Files, PluginOptions } from "./plugin.ts";

/** The plugin for Vite; see {@link PluginOptions}. */
export const tracefx: (options?: PluginOptions) => Plugin = plugin.vite;
