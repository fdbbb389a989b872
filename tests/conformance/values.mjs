/**
 * Recorded values of calls, as `tests/oracle` writes them: JSON, and objects of one key for what JSON does not have.
 *
 * @module
 */
import { device, dtype, float, layout, memoryFormat, torch, tuple } from "tracefx";

/** @typedef {import("tracefx").Tensor} Tensor */

/**
 * A recorded value as JavaScript gives it. A tensor is a copy of its own, for a call may write to it.
 * @type {(value: any, tensors: ReadonlyMap<string, Tensor>) => unknown}
 */
export function decode(value, tensors) {
  return decodeWith(value, (it) => copyOf(it, tensors));
}

/**
 * A recorded value with what `tensor` gives for each tensor in it.
 * @type {(value: any, tensor: (recorded: any) => unknown) => unknown}
 */
export function decodeWith(value, tensor) {
  const each = (/** @type {unknown} */ it) => decodeWith(it, tensor);
  if (Array.isArray(value)) return value.map(each);
  if (value === null || typeof value !== "object") return value;
  const [[kind, it] = []] = Object.entries(value);
  switch (kind) {
    case "tensor":
      return tensor(value);
    case "int":
      return typeof it === "string" ? BigInt(it) : it;
    case "float":
      return float(Number(String(it).replace("inf", "Infinity")));
    case "tuple":
      return tuple(...it.map(each));
    case "dtype":
      return dtype(it);
    case "layout":
      return layout(it);
    case "device":
      return device(it);
    case "memory_format":
      return memoryFormat(it);
    default:
      throw new Error(`there is a value of an unknown kind: ${JSON.stringify(value)}`);
  }
}

/** @type {(value: any, tensors: ReadonlyMap<string, Tensor>) => Tensor} */
function copyOf({ tensor: key, size, stride, offset = 0 }, tensors) {
  const found = tensors.get(key);
  if (found === undefined) throw new Error(`there is no tensor ${key}`);
  const copy = torch.clone(found);
  return stride === undefined ? copy : torch.asStrided(copy, size, stride, offset);
}
