/**
 * The inputs of a trace: a placeholder for each parameter of the traced function, or for each leaf of a nested one, as
 * FX's `create_args_for_root` makes them.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { fxError } from "../base/errors.ts";
import { assert } from "../functions/checks.ts";
import { eq } from "../functions/operator.ts";
import { defineFunction } from "../functions/table.ts";
import { type ArgInput, freezeArg } from "../graph/args.ts";
import { PyTreeCodeGen } from "../graph/codegen/pytree.ts";
import type { Graph } from "../graph/graph.ts";
import { formatArg } from "../graph/print.ts";
import { Tensor } from "../tensor/tensor.ts";
import { InputPacking, OutputPacking, type PackedParameter } from "./packing.ts";
import { type InputParameter, type Parameters, parametersOf } from "./parameters.ts";
import { concreteValues, PH, PHBase } from "./placeholder.ts";
import { nodeOf, type TracedValue } from "./proxy.ts";
import { treeFlatten, treeMap, type PytreeSpec } from "./pytree.ts";
import { traceError } from "../record/stack.ts";
import type { Traceable, TraceOptions } from "./tracer.ts";
import type { TracerBase } from "./tracerBase.ts";

/** The inputs of a trace. */
export interface Inputs {
  /** Calls the function with them, and gives what the output node returns. */
  run(fn: (...args: unknown[]) => unknown): unknown;
  /** Notes in the graph how its inputs and outputs are packed. */
  finish(graph: Graph): void;
}

/** Makes the placeholders of a function. */
export function createInputs(
  tracer: TracerBase,
  root: Traceable,
  method: string,
  { annotations = {}, concreteArgs }: TraceOptions,
): Inputs {
  const parameters = parametersOf(root, method);
  const concrete = concreteValues(parameters, concreteArgs);
  const make = new Placeholders(tracer, concrete, annotations);
  const args: unknown[] = [];
  const packing: PackedParameter[] = [];
  for (const parameter of parameters.list) {
    const packed = make.parameter(parameter, parameters);
    args.push(...packed.args);
    packing.push(packed.packing);
  }
  const isFlattened = packing.some(({ parts }) => parts.some(({ spec }) => !spec.isLeaf));
  const isPacked = isFlattened || packing.some(({ kind }) => kind !== "single");
  let outSpec: PytreeSpec | undefined;
  return {
    run(fn) {
      const result = fn(...args);
      if (!isFlattened) return result;
      const [leaves, spec] = treeFlatten(result);
      outSpec = spec;
      return leaves;
    },
    finish(graph) {
      if (!isPacked) return;
      const inSpec = new InputPacking(packing);
      graph.setCodegen(
        new PyTreeCodeGen({ origArgs: inSpec.names, inSpec, outSpec: outSpec && new OutputPacking(outSpec) }),
      );
    },
  };
}

interface Packed {
  /** What the function is called with. */
  readonly args: readonly unknown[];
  readonly packing: PackedParameter;
}

/** Makes placeholders, and what a traced function gets for them. */
class Placeholders {
  readonly #tracer: TracerBase;
  readonly #concrete: ReadonlyMap<string, unknown>;
  readonly #annotations: Readonly<Record<string, string>>;

  constructor(tracer: TracerBase, concrete: ReadonlyMap<string, unknown>, annotations: Record<string, string>) {
    this.#tracer = tracer;
    this.#concrete = concrete;
    this.#annotations = annotations;
  }

  parameter(parameter: InputParameter, { what }: Parameters): Packed {
    const { name, kind } = parameter;
    switch (kind) {
      case "single": {
        const value = this.#input(parameter);
        return { args: [value], packing: { name, kind, parts: [this.#part(parameter, parameter.name)] } };
      }
      case "options": {
        const entries = parameter.properties.map((it) => [it.name, this.#input(it)] as const);
        const parts = parameter.properties.map((it) => this.#part(it, it.name));
        return { args: [Object.fromEntries(entries)], packing: { name, kind, parts } };
      }
      case "rest": {
        const { count } = parameter;
        const items =
          this.#concrete.get(name) ?? (count === undefined ? undefined : Array.from({ length: count }, () => PH));
        if (!Array.isArray(items)) {
          throw traceError("TraceUnsupported", `${what} takes any number of arguments, as \`...${name}\``, {
            help: `say how many with concreteArgs: { ${name}: [PH, PH] }, or name the parameters`,
          });
        }
        const values = this.#concreteInput(parameter, items) as readonly unknown[];
        const parts = treeFlatten(items)[1].children.map((spec) => ({ name, spec, isOptional: false }));
        return { args: values, packing: { name, kind, parts } };
      }
    }
  }

  #part({ default: given }: Defaulted, name: string): PackedParameter["parts"][number] {
    const spec = treeFlatten(this.#concrete.get(name))[1];
    return { name, spec, isOptional: given !== undefined };
  }

  #input(parameter: Defaulted): unknown {
    const { name, default: given, type } = parameter;
    if (this.#concrete.has(name)) return this.#concreteInput(parameter, this.#concrete.get(name));
    const annotation = this.#annotations[name] ?? type;
    return this.#tracer.createProxy("placeholder", name, given === undefined ? [] : [given], {}, undefined, annotation);
  }

  /** An input for each leaf; what is no {@link PH} stays as it is, and the graph checks that it gets the same. */
  #concreteInput({ name, default: given }: Defaulted, concrete: unknown): unknown {
    const defaults = given === undefined ? [] : [given];
    let count = 0;
    return treeMap((leaf) => {
      count += 1;
      const input = this.#tracer.createProxy("placeholder", `${name}_${count}`, defaults, {}) as TracedValue;
      if (leaf instanceof PHBase) {
        leaf.transferTo(nodeOf(input));
        return input;
      }
      this.#specialise(name, input, leaf);
      return leaf;
    }, concrete);
  }

  /** Makes the graph refuse any other value than the one that it was traced with. */
  #specialise(name: string, input: TracedValue, value: unknown): void {
    const to = (text: string): string => `${name} has been specialized to have value ${text} but got another value`;
    if (value === null || value === undefined) {
      this.#tracer.createProxy("call_function", assertIsNone.target, [input, to("None")], {});
      return;
    }
    const constant = comparable(value);
    if (constant === undefined) {
      // oxlint-disable-next-line no-console -- FX warns too: the trace is right for this very input
      console.warn(
        `symbolicTrace could not add a check that \`${name}\` is the value that the function was specialised for; pass the graph module that same value`,
      );
      return;
    }
    const isEqual = this.#tracer.createProxy("call_function", eq.target, [input, constant], {});
    this.#tracer.createProxy("call_function", assert.target, [isEqual, to(formatArg(freezeArg(constant)))], {});
  }
}

interface Defaulted {
  readonly name: string;
  readonly default?: ArgInput | undefined;
  readonly type?: string | undefined;
}

/** Refuses a value that is not `None`: what a trace that was specialised for `None` begins with. */
const assertIsNone = defineFunction(
  "torch.fx._symbolic_trace._assert_is_none",
  (value: unknown, message: string): null => {
    if (value !== null && value !== undefined) throw fxError("AssertionFailed", message);
    return null;
  },
  { signature: "(value, msg)" },
);

/** The value as a constant of a graph, where `==` tells it from others. */
function comparable(value: unknown): ArgInput | undefined {
  if (value instanceof Tensor) return undefined;
  if (!isObject(value)) return ["function", "symbol"].includes(typeof value) ? undefined : (value as ArgInput);
  try {
    return freezeArg(value as ArgInput);
  } catch {
    return undefined;
  }
}
