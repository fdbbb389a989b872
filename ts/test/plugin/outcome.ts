/**
 * What the export of a module comes to, compared with the module as it is written. It imports nothing, so that a program that runs by itself
 * can have it too.
 *
 * @module
 */
import type * as tracefx from "../../src/index.ts";
import type { nn, ProgramModule, Tensor } from "../../src/index.ts";

/** What it needs of the package. */
type Package = Pick<typeof tracefx, "Dim" | "exportProgram" | "FxError" | "torch">;

/** The class of a module. */
export type Make = new () => nn.Module;

/** A size and what a tensor is filled with. */
export type Input = readonly [rows: number, columns: number, element: number];

/** The example, and inputs of other sizes and elements. */
const OTHERS: readonly Input[] = [
  [4, 3, 1],
  [7, 3, 1],
  [4, 5, 2],
  [3, 3, 0],
  [2, 7, 1],
];

const isExample = (n: number, m: number): boolean => n === 4 && m === 3;

/** What an export comes to: `told` where it is refused, `right` where the program is, else what it is wrong for. */
export function outcome(
  { Dim, exportProgram, FxError, torch }: Package,
  Wanted: Make,
  Traced: Make,
  inputs: readonly Input[] = OTHERS,
): string {
  const dynamicShapes = { x: { 0: Dim("n", { min: 2, max: 64 }), 1: Dim("m", { min: 2, max: 64 }) } };
  const auto = { x: { 0: Dim.AUTO, 1: Dim.AUTO } };
  let told = 0;
  for (const shapes of [dynamicShapes, auto]) {
    let program: ProgramModule;
    try {
      program = exportProgram(new Traced(), [torch.ones(4, 3)], {}, { dynamicShapes: shapes }).module();
    } catch (error) {
      if (!(error instanceof FxError)) throw error;
      told++;
      continue;
    }
    using run = program;
    for (const [n, m, element] of inputs) {
      const x = torch.full([n, m], element, { dtype: "float32" });
      let got: Tensor;
      try {
        got = run(x) as Tensor;
      } catch (error) {
        // The program says that it was not made for these.
        if (error instanceof FxError && /^FX060[0-9]/.test(error.code) && !isExample(n, m)) continue;
        throw error;
      }
      const want = new Wanted().call(x) as Tensor;
      if (!torch.equal(got, want)) return `wrong for ${n} by ${m} of ${element}`;
    }
  }
  return told === 2 ? "told" : "right";
}
