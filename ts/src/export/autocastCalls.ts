/**
 * What is known of the arguments of operators under autocast, which casts them.
 *
 * @module
 */
import { DTYPES, type DType } from "../bindings/dtypes.ts";
import { autocastDtype } from "../engine/modes.ts";
import { call } from "../engine/engine.ts";
import { DTYPE_NAMES } from "../engine/words.ts";
import { TensorMeta } from "../graph/val.ts";

/** The arguments of a call. */
interface KnownCall {
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** The dtypes that autocast casts. */
const CAST: ReadonlySet<DType> = new Set(["float32", "float16", "bfloat16"]);

/** What is known of arguments once autocast, where it holds, has cast them for this overload. */
export function knownUnderAutocast(
  name: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
): KnownCall {
  const low = autocastDtype();
  if (low === undefined) return { args, kwargs };
  const tensors: TensorMeta[] = [];
  walk([...args, ...Object.values(kwargs)], (meta) => tensors.push(meta));
  const dtypes = Uint32Array.from(tensors, ({ dtype }) => DTYPES[dtype].id);
  const id = call((engine) => engine.autocast_dtype(name, low, dtypes));
  if (id === undefined) return { args, kwargs };
  const dtype = DTYPE_NAMES[id] as DType;
  const cast = (meta: TensorMeta): TensorMeta => (CAST.has(meta.dtype) ? new TensorMeta({ ...meta, dtype }) : meta);
  return {
    args: args.map((it) => walk(it, cast)),
    kwargs: Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, walk(it, cast)])),
  };
}

/** A value with others in the place of what is known of tensors in it. */
function walk(value: unknown, map: (meta: TensorMeta) => unknown): unknown {
  if (value instanceof TensorMeta) return map(value);
  return Array.isArray(value) ? value.map((it) => walk(it, map)) : value;
}
