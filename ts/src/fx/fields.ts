/**
 * The plain properties of modules as JSON: what a layer was made with.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { isMember } from "../base/members.ts";
import { isOptions } from "../base/naming.ts";
import { functionNamed, isDefined } from "../functions/table.ts";
import { type ArgInput, tuple } from "../graph/args.ts";
import { device, DeviceArg, DTypeArg, dtype, Float, Tuple, ValueTuple } from "../base/values.ts";
import { GraphModule } from "./graphModule.ts";
import { Module } from "../nn/module.ts";

/** A value in JSON. What JSON has no form for is an object of one key that begins with `$`. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Values nested deeper than this hold themselves. */
const MAX_DEPTH = 100;

/** The properties of a module that are neither registered nor those of every module. */
export function fieldsOf(module: Module, refuse: (name: string) => Error): { [name: string]: Json } {
  const entries = ownProperties(module).map((name): [string, Json] => [
    name,
    encode(Reflect.get(module, name), () => refuse(name), 0),
  ]);
  return Object.fromEntries(entries);
}

/** The same, without those that JSON has no form for. */
export function plainFieldsOf(module: Module): { [name: string]: Json } {
  const isStrange = fxError("GraphArgument", "the property is not plain");
  const entries: [string, Json][] = [];
  for (const name of ownProperties(module)) {
    try {
      entries.push([name, encode(Reflect.get(module, name), () => isStrange, 0)]);
    } catch (error) {
      if (error !== isStrange) throw error;
    }
  }
  return Object.fromEntries(entries);
}

function ownProperties(module: Module): string[] {
  const fresh = module instanceof GraphModule ? new GraphModule() : new Module();
  return Object.keys(module).filter((name) => !Object.hasOwn(fresh, name) && Reflect.get(module, name) !== undefined);
}

/** Gives a module properties. A file may come from anywhere, so none may take the place of a method. */
export function setFields(module: Module, fields: { readonly [name: string]: Json }): void {
  for (const [name, json] of Object.entries(fields)) {
    if (!isMember(name) || name in module) throw malformed(`the property \`${name}\` of ${module.className}`);
    const value = decode(json, `the property \`${name}\` of ${module.className}`);
    Object.defineProperty(module, name, { value, enumerable: true, writable: true, configurable: true });
  }
}

function encode(value: unknown, refuse: () => Error, depth: number): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number")
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: text(value) };
  if (typeof value === "bigint") return { $int: value.toString() };
  if (typeof value === "function" && "target" in value && typeof value.target === "string" && isDefined(value.target)) {
    return { $function: value.target };
  }
  if (typeof value !== "object" || depth > MAX_DEPTH) throw refuse();
  if (value instanceof DTypeArg) return { $dtype: value.name };
  if (value instanceof DeviceArg) return { $device: value.toString() };
  if (value instanceof Float) return { $float: text(value.value) };
  const each = (it: unknown): Json => encode(it, refuse, depth + 1);
  if (value instanceof Tuple || value instanceof ValueTuple) return { $tuple: Array.from(value as unknown[], each) };
  if (Array.isArray(value)) return value.map(each);
  if (!isOptions(value)) throw refuse();
  const entries = Object.entries(value).map(([key, it]): [string, Json] => [key, each(it)]);
  // An object that looks like one of the forms above is one level down.
  return entries.some(([key]) => key.startsWith("$"))
    ? { $object: Object.fromEntries(entries) }
    : Object.fromEntries(entries);
}

function decode(json: Json, where: string): unknown {
  if (json === null || typeof json !== "object") return json;
  if (Array.isArray(json)) return json.map((it: Json) => decode(it, where));
  const entries = Object.entries(json as { readonly [key: string]: Json });
  const [[key, body] = ["", null]] = entries;
  if (entries.length !== 1 || !key.startsWith("$")) return decodeObject(entries, where);
  if (key === "$object" && typeof body === "object" && body !== null && !Array.isArray(body)) {
    return decodeObject(Object.entries(body as { readonly [key: string]: Json }), where);
  }
  if (key === "$tuple" && Array.isArray(body)) return tuple(...body.map((it: Json) => decode(it, where) as ArgInput));
  if (typeof body !== "string") throw malformed(where);
  switch (key) {
    case "$number":
      return Number(body);
    case "$int":
      if (!/^-?\d{1,40}$/.test(body)) throw malformed(where);
      return BigInt(body);
    case "$float":
      return new Float(Number(body));
    case "$dtype":
      return dtype(body as DType);
    case "$device":
      return device(body);
    case "$function":
      if (!isDefined(body)) throw malformed(`${where}, the function ${body}`);
      return functionNamed(body);
    default:
      throw malformed(where);
  }
}

function decodeObject(entries: readonly (readonly [string, Json])[], where: string): object {
  return Object.fromEntries(entries.map(([key, it]) => [key, decode(it, where)]));
}

function text(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function malformed(what: string) {
  return fxError("WireMalformed", `what the file says of ${what} is not what tracefx writes`);
}
