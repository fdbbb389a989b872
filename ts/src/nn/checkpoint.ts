/**
 * Files of `torch.save`: state dicts, and what else of plain values lies beside them.
 *
 * @module
 */
import { call, init } from "../engine/engine.ts";
import { type FileSource, type ReadOptions, readSource } from "../engine/source.ts";
import { readerOf } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import { fxError } from "../base/errors.ts";
import { tuple } from "../graph/args.ts";
import type { DTypeArg } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Parameter } from "./parameter.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** A value of a checkpoint: a dict is a `Map`, a list an array, a tuple a tuple, and a set a `Set`. */
export type CheckpointValue =
  | Tensor
  | number
  | bigint
  | boolean
  | string
  | null
  | DTypeArg
  | readonly CheckpointValue[]
  | ReadonlySet<CheckpointValue>
  | CheckpointDict;

/** A dict of a checkpoint; {@link Module.loadStateDict} takes one whose values are tensors. */
export type CheckpointDict = ReadonlyMap<string | number | boolean | null, CheckpointValue>;

/**
 * Reads a file that `torch.save` wrote. No code of the file is run: tensors, numbers, texts and containers of them are
 * read, and an object of any other class is refused by its name, so save the state dict and not the module.
 *
 * @example
 * ```ts
 * model.loadStateDict(await loadCheckpoint("resnet18.pth"));
 * const training = (await loadCheckpoint(url)) as CheckpointDict;
 * model.loadStateDict(training.get("state_dict"));
 * ```
 */
export async function loadCheckpoint(source: FileSource, options: ReadOptions = {}): Promise<CheckpointDict> {
  const [bytes] = await Promise.all([readSource(source, options, "loadCheckpoint"), init()]);
  options.signal?.throwIfAborted();
  const value = readCheckpoint(bytes, options.limits === undefined ? {} : { limits: options.limits });
  if (value instanceof Map) return value as CheckpointDict;
  throw fxError("ArchiveWrongKind", "the file of torch.save holds no dict", {
    help: "readCheckpoint reads any value, once the engine is loaded",
  });
}

/** Reads the bytes of a file that `torch.save` wrote, whatever value it holds; see {@link loadCheckpoint}. */
export function readCheckpoint(bytes: Uint8Array, options: Pick<ReadOptions, "limits"> = {}): CheckpointValue {
  checkGiven("readCheckpoint", bytes instanceof Uint8Array, "the bytes of a file");
  checkOptions("readCheckpoint", options, ["limits"]);
  const { limits = {} } = options;
  const reader = readerOf(call((engine) => engine.read_checkpoint(bytes, JSON.stringify(limits))));
  return valueOf(reader.value());
}

/** A value of the words: a container is a list that begins with its kind. */
function valueOf(value: EngineValue): CheckpointValue {
  if (!Array.isArray(value)) return value as CheckpointValue;
  const [kind, ...items] = value as readonly EngineValue[];
  switch (kind) {
    case "list":
      return items.map(valueOf);
    case "tuple":
      return tuple(...items.map(valueOf));
    case "set":
      return new Set(items.map(valueOf));
    case "dict": {
      const res = new Map<string, CheckpointValue>();
      for (let at = 0; at + 1 < items.length; at += 2) {
        res.set(valueOf(items[at] as EngineValue) as string, valueOf(items[at + 1] as EngineValue));
      }
      return res;
    }
    case "parameter": {
      const [tensor, requiresGrad] = items;
      if (tensor instanceof Tensor) return new Parameter(tensor, { requiresGrad: requiresGrad === true });
    }
  }
  throw fxError("Internal", `the engine gave a container of the kind ${String(kind)}`);
}
