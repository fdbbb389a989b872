/**
 * Drawings of graphs: an import of its own, `tracefx/draw`.
 *
 * @module
 */
export { type DotAttributes, DotGraph } from "./dot.ts";
export { type DrawOptions, FxGraphDrawer } from "./fxGraphDrawer.ts";
export { GraphTransformObserver, type ObserverOptions } from "./graphTransformObserver.ts";
