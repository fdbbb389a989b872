/**
 * Arguments: pre-order words.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { ARG, LAYOUTS, MAX_DEPTH, MEMORY_FORMATS } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { type Arg, isInt, isNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import {
  Complex,
  DeviceArg,
  Dict,
  DTypeArg,
  Ellipsis,
  type EllipsisType,
  Float,
  LayoutArg,
  List,
  MemoryFormatArg,
  OpArg,
  Slice,
  Tuple,
} from "../base/values.ts";
import type { Cursor } from "./cursor.ts";
import type { Strings, StringWriter } from "./strings.ts";
import type { WordWriter } from "./writer.ts";

const DTYPE_NAMES = Object.keys(DTYPES) as DType[];

/** Writes an argument; `position` gives the place of a node that stands before this one. */
export function writeArg(
  words: WordWriter,
  strings: StringWriter,
  arg: Arg,
  depth: number,
  position: (node: Node) => number,
): void {
  checkDepth(depth);
  switch (typeof arg) {
    case "boolean":
      return words.tagged(ARG.BOOL, Number(arg));
    case "bigint":
      words.tagged(ARG.INT, 0);
      return words.int(arg);
    case "number":
      if (isInt(arg)) {
        words.tagged(ARG.INT, 0);
        words.int(arg);
      } else {
        words.tagged(ARG.FLOAT, 0);
        words.float(arg);
      }
      return;
    case "string":
      return words.tagged(ARG.STR, strings.index(arg));
    case "object":
      break;
    default:
      arg satisfies never;
  }
  if (arg === null) return words.tagged(ARG.NONE, 0);
  if (isNode(arg)) return words.tagged(ARG.NODE, position(arg));
  if (arg instanceof List || arg instanceof Tuple) {
    words.tagged(arg instanceof List ? ARG.LIST : ARG.TUPLE, arg.length);
    for (const it of arg) writeArg(words, strings, it, depth + 1, position);
  } else if (arg instanceof Dict) {
    words.tagged(ARG.DICT, arg.size);
    for (const [key, value] of arg) {
      strings.write(words, key);
      writeArg(words, strings, value, depth + 1, position);
    }
  } else if (arg instanceof Slice) {
    words.tagged(ARG.SLICE, 0);
    for (const it of [arg.start, arg.stop, arg.step]) writeArg(words, strings, it, depth + 1, position);
  } else if (arg instanceof Float) {
    words.tagged(ARG.FLOAT, 0);
    words.float(arg.value, arg.nanBits);
  } else if (arg instanceof Complex) {
    words.tagged(ARG.COMPLEX, 0);
    words.float(arg.re, arg.nanBits[0]);
    words.float(arg.im, arg.nanBits[1]);
  } else if (arg instanceof DTypeArg) words.tagged(ARG.DTYPE, DTYPES[arg.name].id);
  else if (arg instanceof DeviceArg) writeDevice(words, strings, arg);
  else if (arg instanceof LayoutArg) words.tagged(ARG.LAYOUT, LAYOUTS.indexOf(arg.name));
  else if (arg instanceof MemoryFormatArg) words.tagged(ARG.MEMORY_FORMAT, MEMORY_FORMATS.indexOf(arg.name));
  else if (arg instanceof OpArg) words.tagged(ARG.OP, strings.index(arg.name));
  else {
    arg satisfies EllipsisType;
    words.tagged(ARG.ELLIPSIS, 0);
  }
}

/** Writes a device. */
export function writeDevice(words: WordWriter, strings: StringWriter, device: DeviceArg): void {
  const { type, index } = device;
  const isIndex = index === undefined || (Number.isInteger(index) && index >= 0 && index < 2 ** 31);
  if (!isIndex || !isDeviceType(type)) throw fxError("GraphArgument", `\`${device}\` is not a device`);
  words.tagged(index === undefined ? ARG.DEVICE : ARG.DEVICE_INDEX, strings.index(type));
  if (index !== undefined) words.word(index);
}

/** Reads an argument; it may refer to the nodes that are there. */
export function readArg(cursor: Cursor, strings: Strings, nodes: readonly Node[], depth: number): Arg {
  if (depth >= MAX_DEPTH) throw cursor.exceeds(`an argument is nested deeper than ${MAX_DEPTH} levels`);
  const word = cursor.word();
  // Most arguments are nodes.
  if ((word & 0xff) !== ARG.NODE) return readOther(cursor, strings, nodes, depth, word);
  const node = nodes[word >>> 8];
  if (node === undefined) throw cursor.fail(`node ${nodes.length} uses node ${word >>> 8}, which is not before it`);
  return node;
}

function readOther(cursor: Cursor, strings: Strings, nodes: readonly Node[], depth: number, word: number): Arg {
  const [tag, payload] = [word & 0xff, word >>> 8];
  const plain = <T>(value: T): T => {
    if (payload !== 0) throw cursor.fail(`an argument of kind ${tag} has the payload ${payload}`);
    return value;
  };
  const items = (count: number): Arg[] => {
    const res: Arg[] = [];
    for (let at = 0; at < count; at++) res.push(readArg(cursor, strings, nodes, depth + 1));
    return res;
  };
  switch (tag) {
    case ARG.NONE:
      return plain(null);
    case ARG.ELLIPSIS:
      return plain(Ellipsis);
    case ARG.BOOL:
      return readBool(cursor, payload);
    case ARG.INT:
      return plain(cursor.int());
    case ARG.FLOAT:
      return plain(readFloat(cursor));
    case ARG.COMPLEX:
      return plain(Complex.ofBits(cursor.bits(), cursor.bits()));
    case ARG.STR:
      return strings.get(cursor, payload);
    case ARG.DTYPE:
      return new DTypeArg(readDType(cursor, payload));
    case ARG.DEVICE:
    case ARG.DEVICE_INDEX:
      return readDeviceAfter(cursor, strings, word);
    case ARG.LAYOUT:
      return new LayoutArg(numbered(cursor, LAYOUTS, payload, "layout"));
    case ARG.MEMORY_FORMAT:
      return new MemoryFormatArg(numbered(cursor, MEMORY_FORMATS, payload, "memory format"));
    case ARG.OP:
      return new OpArg(strings.get(cursor, payload));
    case ARG.LIST:
      return List.frozen(items(cursor.checkCount(payload, 1, "items")));
    case ARG.TUPLE:
      return Tuple.frozen(items(cursor.checkCount(payload, 1, "items")));
    case ARG.DICT: {
      const count = cursor.checkCount(payload, 2, "entries");
      return Dict.frozen(readEntries(cursor, strings, nodes, count, depth + 1));
    }
    case ARG.SLICE: {
      const [start, stop, step] = items(3) as [Arg, Arg, Arg];
      return plain(new Slice(start, stop, step));
    }
    default:
      throw cursor.fail(`there is no argument of kind ${tag} here`);
  }
}

/** Reads the entries of a dict, or keyword arguments. */
export function readEntries(
  cursor: Cursor,
  strings: Strings,
  nodes: readonly Node[],
  count: number,
  depth: number,
): Map<string, Arg> {
  const entries = new Map<string, Arg>();
  for (let at = 0; at < count; at++) {
    const key = strings.next(cursor);
    if (entries.has(key)) throw cursor.fail(`the key \`${key}\` is there twice`);
    entries.set(key, readArg(cursor, strings, nodes, depth));
  }
  return entries;
}

/** Reads a device. */
export function readDevice(cursor: Cursor, strings: Strings): DeviceArg {
  return readDeviceAfter(cursor, strings, cursor.word());
}

function readDeviceAfter(cursor: Cursor, strings: Strings, word: number): DeviceArg {
  const type = strings.get(cursor, word >>> 8);
  if (!isDeviceType(type)) throw cursor.fail(`\`${type}\` is not a device`);
  if ((word & 0xff) === ARG.DEVICE) return new DeviceArg(type);
  if ((word & 0xff) !== ARG.DEVICE_INDEX) throw cursor.fail(`there is no device of kind ${word & 0xff}`);
  const index = cursor.word();
  if (index >= 2 ** 31) throw cursor.fail("the index of a device takes 31 bits");
  return new DeviceArg(type, index);
}

function isDeviceType(type: string): boolean {
  return /^[A-Za-z0-9_]+$/.test(type);
}

/** Reads a float, as a number where that says all. */
export function readFloat(cursor: Cursor): number | Float {
  const value = cursor.peekFloat();
  if (Number.isNaN(value)) {
    const float = Float.ofBits(cursor.bits());
    return float.nanBits === undefined ? value : float;
  }
  cursor.bytes(8);
  return isInt(value) ? new Float(value) : value;
}

/** Reads a bool that is a payload or a word. */
export function readBool(cursor: Cursor, value: number): boolean {
  if (value > 1) throw cursor.fail(`${value} is neither true nor false`);
  return value === 1;
}

/** The dtype of a number. */
export function readDType(cursor: Cursor, number: number): DType {
  return numbered(cursor, DTYPE_NAMES, number, "dtype");
}

/** The value that a number stands for. */
export function numbered<T>(cursor: Cursor, all: readonly T[], number: number, what: string): T {
  const value = all[number];
  if (value === undefined) throw cursor.fail(`there is no ${what} ${number}`);
  return value;
}

/** Refuses to write what no reader would accept. */
export function checkDepth(depth: number): void {
  if (depth >= MAX_DEPTH) throw fxError("LimitExceeded", `a value is nested deeper than ${MAX_DEPTH} levels`);
}
