/** What exported programs give, and what the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import {
  Dim,
  type ExportedProgram,
  exportProgram,
  type GpuTensor,
  type Graph,
  type GraphModule,
  load,
  nn,
  type ProgramModule,
  save,
  type Tensor,
  torch,
} from "tracefx";

declare const program: ExportedProgram;
declare const x: Tensor;

export function results(): void {
  const dynamicShapes = { input: { 0: Dim("batch", { max: 64 }) } };
  expectTypeOf(exportProgram(new nn.ReLU(), [x], {}, { dynamicShapes })).toEqualTypeOf<ExportedProgram>();
  expectTypeOf(load("model.pt2")).toEqualTypeOf<Promise<ExportedProgram>>();
  expectTypeOf(program.graphModule).toEqualTypeOf<GraphModule>();
  expectTypeOf(program.graph).toEqualTypeOf<Graph>();
  expectTypeOf(program.stateDict).toEqualTypeOf<Map<string, Tensor>>();
  expectTypeOf(program.module()).toEqualTypeOf<ProgramModule>();
  expectTypeOf(program.runDecompositions()).toEqualTypeOf<ExportedProgram>();
  expectTypeOf(program.runDecompositions(new Set(["aten.add.Tensor"]))).toEqualTypeOf<ExportedProgram>();
  expectTypeOf([...program.namedParameters()]).toEqualTypeOf<[string, Tensor][]>();
  expectTypeOf<ExportedProgram>().toExtend<Disposable>();
}

/** A tensor on a GPU is waited for, and is none of the CPU's. */
export async function onGpu(model: ProgramModule): Promise<void> {
  const there = await x.to("gpu");
  expectTypeOf(there).toEqualTypeOf<GpuTensor>();
  expectTypeOf(there.cpu()).toEqualTypeOf<Promise<Tensor>>();
  expectTypeOf(x.to("cpu")).toEqualTypeOf<Tensor>();
  const [result] = await model.runFlatAsync([there], { outputs: "gpu" });
  expectTypeOf(result as GpuTensor).toEqualTypeOf<GpuTensor>();
  // @ts-expect-error operators of the CPU do not see its elements
  torch.add(x, there);
  // @ts-expect-error nor does what is read at once
  void there.data;
}

/** A program is no module: `module()` gives what can be called. */
export function refused(): void {
  expectTypeOf(program.forward).returns.toEqualTypeOf<never>();
  // @ts-expect-error a function is exported as the forward of a module
  exportProgram((a: Tensor) => a.relu(), [x]);
  // @ts-expect-error the arguments are a list
  exportProgram(new nn.ReLU(), x);
  // @ts-expect-error there is no such option
  exportProgram(new nn.ReLU(), [x], {}, { dynamic_shapes: {} });
  // @ts-expect-error a table holds the names of operators
  program.runDecompositions(new Set([1]));
  // @ts-expect-error the graph is the program's own
  program.graphModule = program.unlift();
  // @ts-expect-error a module is no program
  save(new nn.ReLU());
  // @ts-expect-error a symbol's name is a text
  Dim(3);
}
