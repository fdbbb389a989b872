/**
 * Calls of methods by PyTorch's name.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { recorderOf } from "../record/record.ts";
import { kindOf, memberOf } from "../base/members.ts";
import { type CallArguments, joinArguments } from "../base/naming.ts";

/** Calls a method of a value: of a tensor by PyTorch's name, of anything else by its own. */
export function callMethod(name: string, self: unknown, { args, kwargs }: CallArguments): unknown {
  const recorder = recorderOf([self]) ?? recorderOf(args) ?? recorderOf(Object.values(kwargs));
  if (recorder !== undefined) return recorder.createProxy("call_method", name, [self, ...args], kwargs);
  const given = joinArguments({ args, kwargs });
  if (name === "__call__" && typeof self === "function") return self(...given) as unknown;
  const method = memberOf(self, name);
  if (typeof method === "function") return method.apply(self, given) as unknown;
  throw fxError("AttributeMissing", `there is no method \`${name}\` on ${kindOf(self)}`);
}
