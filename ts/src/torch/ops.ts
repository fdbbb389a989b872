/**
 * `torch.ops`: operators by their own names.
 *
 * @module
 */
import type { AtenOverloads } from "../bindings/operators.ts";
import { type AnyFunction, overloadOf } from "../functions/operators.ts";
import type { NamedTarget } from "../graph/target.ts";

/** An overload of an operator: `torch.ops.aten.add.Tensor`. */
export interface OperatorOverload extends NamedTarget {
  (...args: unknown[]): unknown;
}

/** An operator, which finds the overload that a call is for, and its overloads by name: `torch.ops.aten.add`. */
export type OperatorPacket<Overload extends string = string> = OperatorOverload & {
  readonly [overload in Overload]: OperatorOverload;
};

/** Operators by name. */
export type OperatorNamespace = { readonly [name in keyof AtenOverloads]: OperatorPacket<AtenOverloads[name]> };

/** The namespaces of operators. */
export interface Operators {
  /** PyTorch's own operators. */
  readonly aten: OperatorNamespace;
}

const NAME = /^[A-Za-z_]\w*$/;

/** An object whose members are made when they are asked for. */
function lazily<T>(target: object, make: (name: string) => T): object {
  return new Proxy(target, {
    get(own, key, receiver): unknown {
      // What every object and function has stays; `default` is the only name among operators that is a keyword.
      if (typeof key !== "string" || key in own || key === "then" || !NAME.test(key))
        return Reflect.get(own, key, receiver);
      return make(key);
    },
  });
}

function packetOf(name: string): OperatorPacket {
  const packet: AnyFunction = overloadOf(`torch.ops.aten.${name}`);
  return lazily(packet, (overload) => overloadOf(`torch.ops.aten.${name}.${overload}`)) as OperatorPacket;
}

const packets = new Map<string, OperatorPacket>();

function packetOnce(name: string): OperatorPacket {
  const known = packets.get(name);
  if (known !== undefined) return known;
  const made = packetOf(name);
  packets.set(name, made);
  return made;
}

/** The operators by namespace and name. */
export const ops: Operators = Object.freeze({
  aten: lazily(Object.create(null) as object, packetOnce) as OperatorNamespace,
});
