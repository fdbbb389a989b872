/**
 * `torch.ops`: operators by their own names.
 *
 * @module
 */
import type { AtenOverloads } from "../../../bindings/operators.ts";
import { type AnyFunction, overloadOf } from "./operators.ts";
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

/** The namespaces of operators of your own, which `torch.library` defines. */
export interface OwnOperators {
  readonly [namespace: string]: Readonly<Record<string, OperatorPacket>>;
}

/** The namespaces of operators. */
export type Operators = OwnOperators & {
  /** PyTorch's own operators. */
  readonly aten: OperatorNamespace;
};

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

function packetOf(target: string): OperatorPacket {
  const packet: AnyFunction = overloadOf(target);
  return lazily(packet, (overload) => overloadOf(`${target}.${overload}`)) as OperatorPacket;
}

/** Makes what is asked for under a name once. */
function once<T>(make: (name: string) => T): (name: string) => T {
  const made = new Map<string, T>();
  return (name) => {
    const known = made.get(name) ?? make(name);
    made.set(name, known);
    return known;
  };
}

function namespaceOf(namespace: string): object {
  const packet = once((name) => packetOf(`torch.ops.${namespace}.${name}`));
  return lazily(Object.create(null) as object, packet);
}

/** The operators by namespace and name. */
export const ops: Operators = lazily(Object.create(null) as object, once(namespaceOf)) as Operators;
