/**
 * Modules that hold parameters: `ParameterList` and `ParameterDict`.
 *
 * @module
 */
import { checkGiven, checkIterable } from "../base/given.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { attributesOfKind } from "./attributeMap.ts";
import { markBuiltin, markShared } from "./builtin.ts";
import { entriesOf, positionIn } from "./container.ts";
import { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";

/** What both containers are. */
abstract class ParameterContainer extends Module {
  override forward(): never {
    throw fxError("NotImplemented", `${this.className} should not be called.`);
  }

  override extraRepr(): string {
    const lines = entries(this).map(([name, parameter]) => {
      const size = parameter.shape.join("x");
      return `  (${name}): Parameter containing: [${this.describe(parameter)} of size ${size}]`;
    });
    return lines.join("\n");
  }

  protected abstract describe(parameter: Parameter): string;
}

/**
 * A list of parameters. Tensors that are put into it become parameters.
 *
 * @example
 * ```ts
 * const scales = new ParameterList([torch.ones([3]), torch.ones([3])]);
 * [...scales.namedParameters().keys()]; // ["0", "1"]
 * ```
 */
export class ParameterList extends ParameterContainer implements Iterable<Parameter> {
  constructor(values: Iterable<Tensor> = []) {
    super();
    const areMany = typeof (values as Partial<Iterable<Tensor>> | null)?.[Symbol.iterator] === "function";
    checkGiven("ParameterList", areMany, "a list of tensors");
    this.extend(values);
  }

  /** The number of parameters. */
  override get length(): number {
    return attributesOfKind(this, "parameter").names.length;
  }

  /** The parameter at a position; -1 is the last one. While a trace is made it is what stands for the parameter. */
  at(index: number): Parameter {
    return Reflect.get(this, String(positionIn(this.length, index))) as Parameter;
  }

  /** Puts a parameter in the place of another. */
  set(index: number, value: Tensor): void {
    this.registerParameter(String(positionIn(this.length, index)), asParameter(this, value));
  }

  /** Puts a parameter behind all others. */
  append(value: Tensor): this {
    this.registerParameter(String(this.length), asParameter(this, value));
    return this;
  }

  /** Puts parameters behind all others. */
  extend(values: Iterable<Tensor>): this {
    checkIterable(`${this.className}.extend`, "values", values);
    for (const value of Array.from(values)) this.append(value);
    return this;
  }

  /** A list of a part of the parameters, which are the same. */
  slice(start?: number, end?: number): ParameterList {
    return new ParameterList(
      entries(this)
        .slice(start, end)
        .map(([, parameter]) => parameter),
    );
  }

  *[Symbol.iterator](): IterableIterator<Parameter> {
    for (let at = 0; at < this.length; at++) yield this.at(at);
  }

  protected override describe(parameter: Parameter): string {
    return `torch.${parameter.dtype}`;
  }
}

/**
 * Parameters by name. Tensors that are put into it become parameters.
 *
 * @example
 * ```ts
 * const scales = new ParameterDict({ left: torch.ones([3]), right: torch.ones([3]) });
 * scales.get("left");
 * ```
 */
export class ParameterDict extends ParameterContainer implements Iterable<[string, Parameter]> {
  constructor(parameters: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>> = {}) {
    super();
    this.update(parameters);
  }

  /** The number of parameters. */
  get size(): number {
    return attributesOfKind(this, "parameter").names.length;
  }

  /** The parameter of this name. While a trace is made it is what stands for the parameter. */
  get(name: string): Parameter {
    if (this.has(name)) return Reflect.get(this, name) as Parameter;
    throw fxError("AttributeMissing", `the ParameterDict has no parameter \`${name}\``, {
      help: `it has ${[...this.keys()].join(", ") || "none"}`,
    });
  }

  /** Whether there is a parameter of this name. */
  has(name: string): boolean {
    return this.attributes.get(name)?.kind === "parameter";
  }

  /** Puts a parameter under this name. */
  set(name: string, value: Tensor): this {
    this.registerParameter(name, asParameter(this, value));
    return this;
  }

  /** Removes the parameter of this name; whether there was one. */
  delete(name: string): boolean {
    return this.has(name) && this.attributes.delete(name);
  }

  /** Removes all parameters. */
  clear(): void {
    for (const name of this.keys()) this.attributes.delete(name);
  }

  /** Adds parameters, in the place of those of the same names. */
  update(parameters: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>> | ParameterDict): this {
    const added = parameters instanceof ParameterDict ? entries(parameters) : entriesOf(parameters);
    for (const [name, value] of added) this.set(name, value);
    return this;
  }

  /** The names. */
  keys(): IterableIterator<string> {
    const names = entries(this).map(([name]) => name);
    return names[Symbol.iterator]();
  }

  /** The parameters. */
  *values(): IterableIterator<Parameter> {
    for (const name of this.keys()) yield this.get(name);
  }

  *[Symbol.iterator](): IterableIterator<[string, Parameter]> {
    for (const name of this.keys()) yield [name, this.get(name)];
  }

  protected override describe({ dtype }: Parameter): string {
    return TENSOR_TYPES[dtype] ?? `torch.${dtype}`;
  }
}

/** PyTorch's old names of the types of tensors, which a ParameterDict prints. */
const TENSOR_TYPES: Partial<Record<DType, string>> = {
  bool: "torch.BoolTensor",
  uint8: "torch.ByteTensor",
  int8: "torch.CharTensor",
  int16: "torch.ShortTensor",
  int32: "torch.IntTensor",
  int64: "torch.LongTensor",
  float16: "torch.HalfTensor",
  bfloat16: "torch.BFloat16Tensor",
  float32: "torch.FloatTensor",
  float64: "torch.DoubleTensor",
  complex64: "torch.ComplexFloatTensor",
  complex128: "torch.ComplexDoubleTensor",
};

function entries(container: Module): [string, Parameter][] {
  const { names, attributes } = attributesOfKind(container, "parameter");
  return attributes.flatMap((it, at): [string, Parameter][] =>
    it.kind === "parameter" ? [[names[at] as string, it.tensor as Parameter]] : [],
  );
}

function asParameter(container: Module, value: Tensor): Parameter {
  if (value instanceof Parameter) return value;
  if (value instanceof Tensor) return new Parameter(value);
  throw fxError("GraphArgument", `a ${container.className} holds tensors, not a value of type ${typeof value}`);
}

markShared(ParameterContainer);
markBuiltin({ ParameterList, ParameterDict });
