/**
 * The worker that lays out pictures, so that a page stays usable meanwhile.
 *
 * @module
 */
import { layOut, type LayoutRequest } from "./layout.ts";

addEventListener("message", ({ data }: MessageEvent<LayoutRequest>) => {
  const layout = layOut(data);
  const { starts, points, branches, edgeStarts, ofEdges } = layout.wires;
  const transfer = [layout.boxes, starts, points, branches, edgeStarts, ofEdges].map((it) => it.buffer as ArrayBuffer);
  postMessage(layout, { transfer });
});
