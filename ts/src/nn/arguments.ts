/**
 * How the constructors of layers take their arguments: by position, as in Python, or by name in a trailing object.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { unknownOption } from "../base/given.ts";
import { type DTypeArg, dtypeName } from "../base/values.ts";

/** A tuple type cut off after any number of its entries. */
type Started<P extends readonly unknown[]> = P extends readonly [...infer Init, unknown] ? P | Started<Init> : P;

/**
 * The arguments of a constructor: the required ones, then as many of the optional ones as wanted, then options. A required
 * argument may be among the options instead, and so may all that come after it.
 *
 * @example
 * ```ts
 * type LinearArguments = Arguments<[inFeatures: number, outFeatures: number], [bias: boolean], LinearOptions>;
 * ```
 */
export type Arguments<R extends readonly unknown[], P extends readonly unknown[], O> =
  | Spread<R, Started<P>, O>
  | WithOptions<Started<R>, O>;

type Spread<R extends readonly unknown[], S, O> = S extends readonly unknown[] ? [...R, ...S, options?: O] : never;
type WithOptions<S, O> = S extends readonly unknown[] ? [...S, options: O] : never;

/** What a constructor has after {@link bind}: every option, by name. */
export type Bound<O> = { readonly [K in keyof O]-?: Exclude<O[K], undefined | DTypeArg> };

/** Options of layers that have parameters. */
export interface FactoryOptions {
  /** Where the parameters are; there is only `cpu`. */
  readonly device?: "cpu" | null;
  /** The dtype of the parameters, `float32` by default. */
  readonly dtype?: DType | DTypeArg | null;
}

/** The defaults of {@link FactoryOptions}, after all other arguments as in PyTorch. */
export const FACTORY: { readonly device: "cpu" | null; readonly dtype: DType | null } = { device: null, dtype: null };

/**
 * The arguments of a constructor by name. Positions are those of `required` and then of the keys of `defaults`; `named`
 * arguments have no position.
 */
export function bind<O extends object>(
  what: string,
  given: readonly unknown[],
  required: readonly (keyof O & string)[],
  defaults: Partial<Bound<O>>,
  named: Partial<Bound<O>> = {},
): Bound<O> {
  const names = [...required, ...Object.keys(defaults)];
  const res: Record<string, unknown> = { ...defaults, ...named };
  const last = given.at(-1);
  const options = isOptions(last) ? last : undefined;
  const positional = options === undefined ? given : given.slice(0, -1);
  if (positional.length > names.length) {
    throw fxError("InvalidOption", `${what} takes at most ${names.length} arguments, not ${positional.length}`, {
      help: `they are ${names.join(", ")}, and then an object of options`,
    });
  }
  for (const [at, value] of positional.entries()) if (value !== undefined) res[names[at] as string] = value;
  for (const [name, value] of Object.entries(options ?? {})) {
    const at = names.indexOf(name);
    if (at < 0 && !Object.hasOwn(named, name)) {
      const known = [...names, ...Object.keys(named)];
      throw unknownOption(what, name, known);
    }
    if (at >= 0 && at < positional.length && positional[at] !== undefined) {
      throw fxError("InvalidOption", `${what} got two values for \`${name}\``, {
        help: "give it by position or among the options",
      });
    }
    if (value !== undefined) res[name] = value;
  }
  const missing = required.filter((name) => res[name] === undefined);
  if (missing.length > 0) {
    throw fxError("InvalidOption", `${what} needs ${missing.map((name) => `\`${name}\``).join(" and ")}`, {
      help: `give it by position or as an option: new ${what}({ ${missing[0]}: ... })`,
    });
  }
  checkDevice(what, res["device"]);
  if ("dtype" in res) res["dtype"] = dtypeName(res["dtype"]);
  return res as Bound<O>;
}

function checkDevice(what: string, device: unknown): void {
  if (device === undefined || device === null || device === "cpu") return;
  throw fxError("InvalidOption", `${what} cannot be on the device ${String(device)}`, {
    help: "tensors are in the memory of the engine: leave `device` out",
  });
}
