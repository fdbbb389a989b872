/**
 * The explorer: an import of its own, `tracefx/explorer`. It defines the element `<tracefx-graph>` where there are elements, and has
 * what the element is made of for those who draw otherwise: the model of a program, its layout, its picture as SVG.
 *
 * @example
 * ```html
 * <script type="module">import "tracefx/explorer";</script>
 * <tracefx-graph src="model.pt2" permalink></tracefx-graph>
 * ```
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors and functions into the table, for runs
import "../install.ts";
import { TracefxGraph } from "./element.ts";

export { type SelectDetail, TracefxGraph } from "./element.ts";
export { type Picture, pictureOf } from "./drawing.ts";
export { layOut, type Layout, type LayoutRequest, type Wires } from "./layout.ts";
export { type Explorable, GraphModel, type Item, type ItemKind } from "./model.ts";
export { compareModels, firstParting, type ModelDiff, type Parting } from "./diff.ts";
export { type Heat, heatOf, type Measured, measuredOf } from "./measured.ts";
export { filledInputs, inputsOf, type InputSlot, inputSlots, randomInputs } from "./inputs.ts";
export { type NodeRun, profileProgram, type ProgramRun, runProgram } from "./run.ts";
export { planGraph } from "./planGraph.ts";
export { opening, type Scene, sceneOf, type SceneOptions } from "./scene.ts";
export { search } from "./search.ts";
export { type Statistics, statisticsOf, statisticsOfElements } from "./statistics.ts";
export { svgOf } from "./svg.ts";
export { DARK, type Difference, LIGHT, type Theme } from "./theme.ts";

declare global {
  interface HTMLElementTagNameMap {
    "tracefx-graph": TracefxGraph;
  }
}

if (globalThis.customElements?.get("tracefx-graph") === undefined) {
  globalThis.customElements?.define("tracefx-graph", TracefxGraph);
}
