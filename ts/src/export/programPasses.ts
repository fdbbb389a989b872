/**
 * Passes over programs: `torch.export.passes`.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { DeviceArg } from "../base/values.ts";
import { ExportedProgram } from "./exportedProgram.ts";

/** Where a program is moved to: one device, or from the names of devices to those of others. */
export type DeviceLocation = string | DeviceArg | Readonly<Record<string, string>>;

/** The types of devices that PyTorch knows, in its order. */
const DEVICE_TYPES = [
  ..."cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia".split(" "),
  "privateuseone",
];

/**
 * The same program for another device: `torch.export.passes.move_to_device_pass`. What nodes say of devices changes, and what
 * is known of their values; the tensors are in this machine's memory, whatever the device is called. The given program stays as
 * it is, where PyTorch changes it.
 *
 * @throws {@link FxError} where something is to go to what is no device, in PyTorch's words.
 *
 * @example
 * ```ts
 * const onCpu = moveToDevicePass(program, "cpu");
 * const swapped = moveToDevicePass(program, { "cuda:0": "cuda:1" });
 * ```
 */
export function moveToDevicePass(program: ExportedProgram, location: DeviceLocation): ExportedProgram {
  checkGiven("moveToDevicePass", program instanceof ExportedProgram, "an ExportedProgram");
  const isPlace = typeof location === "string" || (typeof location === "object" && location !== null);
  checkGiven("moveToDevicePass", isPlace, "a device, or an object of devices by device");
  const where = location instanceof DeviceArg ? location.toString() : location;
  for (const name of typeof where === "string" ? [where] : Object.values(where)) {
    checkGiven("moveToDevicePass", typeof name === "string", "a device, or an object of devices by device");
    checkDevice(name);
  }
  const moved = program.through((it) => it.moved_to_device(JSON.stringify(where)));
  moved.validate();
  return moved;
}

/** Refuses what is the name of no device, as `torch.device` does. */
function checkDevice(name: string): void {
  const [type = "", ...rest] = name.split(":");
  const says =
    name === ""
      ? "Device string must not be empty"
      : !DEVICE_TYPES.includes(type)
        ? `Expected one of ${DEVICE_TYPES.join(", ")} device type at start of device string: ${name}`
        : rest.length > 1 || rest.some((it) => !/^(?:0|[1-9]\d{0,8})$/.test(it))
          ? `Invalid device string: '${name}'`
          : undefined;
  if (says !== undefined) throw fxError("InvalidOption", says, { help: "write cpu, cuda or cuda:1" });
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
  checkGiven("liftConstantsPass", program instanceof ExportedProgram, "an ExportedProgram");
  return program.through((it) => it.with_lifted_constants());
}
