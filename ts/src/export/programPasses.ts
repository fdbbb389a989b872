/**
 * Passes over programs: `torch.export.passes`.
 *
 * @module
 */
import { DeviceArg } from "../graph/values.ts";
import type { ExportedProgram } from "./exportedProgram.ts";

/** Where a program is moved to: one device, or from the names of devices to those of others. */
export type DeviceLocation = string | DeviceArg | Readonly<Record<string, string>>;

/**
 * The same program for another device: `torch.export.passes.move_to_device_pass`. What nodes say of devices changes, and what
 * is known of their values; the tensors are in this machine's memory, whatever the device is called. The given program stays as
 * it is, where PyTorch changes it.
 *
 * @example
 * ```ts
 * const onCpu = moveToDevicePass(program, "cpu");
 * const swapped = moveToDevicePass(program, { "cuda:0": "cuda:1" });
 * ```
 */
export function moveToDevicePass(program: ExportedProgram, location: DeviceLocation): ExportedProgram {
  const where = location instanceof DeviceArg ? location.toString() : location;
  const moved = program.through((it) => it.moved_to_device(JSON.stringify(where)));
  moved.validate();
  return moved;
}

/**
 * The program with an input of the graph for each tensor that the graph reads from its module, as passes leave them that fold
 * constants: `lift_constants_pass`. `program.module()` does the opposite.
 *
 * @example
 * ```ts
 * const lifted = liftConstantsPass(program);
 * lifted.graphSignature.liftedTensorConstants; // ["_tensor_constant0"]
 * ```
 */
export function liftConstantsPass(program: ExportedProgram): ExportedProgram {
  return program.through((it) => it.with_lifted_constants());
}
