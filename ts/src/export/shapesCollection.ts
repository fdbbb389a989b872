/**
 * Dynamic sizes said of tensors, or found in further inputs.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkArguments, checkGiven, checkList } from "../base/given.ts";
import { Tensor } from "../tensor/tensor.ts";
import { treeFlatten, treeMap, treeUnflatten } from "../trace/pytree.ts";
import { Dim } from "./dim.ts";
import type { DynamicShapesBuilder } from "./dynamicShapes.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { pythonText } from "./pythonText.ts";

/**
 * Dynamic sizes by tensors, for inputs whose structure is tedious to write again: `torch.export.ShapesCollection`.
 *
 * @example
 * ```ts
 * const shapes = new ShapesCollection();
 * shapes.set(x, [batch, null]);
 * exportProgram(model, [{ first: [x] }], { dynamicShapes: shapes });
 * ```
 */
export class ShapesCollection implements DynamicShapesBuilder {
  readonly #shapes = new Map<Tensor, unknown>();

  /** Says something of a tensor: a list with something for each dimension, or an object by their numbers. */
  set(tensor: Tensor, shape: unknown): this {
    checkGiven("ShapesCollection.set", tensor instanceof Tensor, "a tensor", "give the one that is among the inputs");
    const known = this.#shapes.get(tensor);
    if (known !== undefined && pythonText(known) !== pythonText(shape)) {
      throw fxError(
        "DynamicShapes",
        `Shapes assigned to input do not match: expected ${pythonText(known)}, got ${pythonText(shape)}`,
      );
    }
    this.#shapes.set(tensor, shape);
    return this;
  }

  /** What was said of a tensor. */
  get(tensor: Tensor): unknown {
    return this.#shapes.get(tensor);
  }

  /** Of how many tensors something is said. */
  get size(): number {
    return this.#shapes.size;
  }

  /** What was said, in the structure of the inputs. */
  dynamicShapes(argNames: readonly string[], inputs: readonly unknown[]): Readonly<Record<string, unknown>> {
    checkInputs("ShapesCollection.dynamicShapes", argNames, inputs);
    const found = new Set<Tensor>();
    const shapes = inputs.map((input) =>
      treeMap((leaf) => {
        if (!(leaf instanceof Tensor && this.#shapes.has(leaf))) return null;
        found.add(leaf);
        return this.#shapes.get(leaf);
      }, input),
    );
    if (found.size !== this.#shapes.size) {
      throw fxError(
        "DynamicShapes",
        "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them " +
          "as args? Maybe such tensors are contained in classes that were not registered with pytree?",
      );
    }
    return Object.fromEntries(argNames.map((name, at) => [name, shapes[at]]));
  }
}

/** Further inputs of a call. */
interface Example {
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/**
 * Further inputs, which tell what is dynamic: the sizes and ints in which they differ from those of the export, as
 * `torch.export.AdditionalInputs`.
 *
 * @example
 * ```ts
 * const others = new AdditionalInputs();
 * others.add([zeros([7, 3])]);
 * exportProgram(model, [zeros([5, 3])], { dynamicShapes: others });
 * ```
 */
export class AdditionalInputs implements DynamicShapesBuilder {
  readonly #examples: Example[] = [];

  /** Adds the inputs of a call. */
  add(args: readonly unknown[], kwargs: Readonly<Record<string, unknown>> = {}): this {
    checkArguments("AdditionalInputs.add", args, kwargs);
    this.#examples.push({ args, kwargs });
    return this;
  }

  /** What is dynamic, in the structure of the inputs. */
  dynamicShapes(argNames: readonly string[], inputs: readonly unknown[]): Readonly<Record<string, unknown>> {
    checkInputs("AdditionalInputs.dynamicShapes", argNames, inputs);
    const others = this.#examples.map(({ args, kwargs }) =>
      argNames.map((name, at) => (at < args.length ? args[at] : kwargs[name])),
    );
    const merged = argNames.map((name, at) => {
      const [leaves, spec] = treeFlatten(inputs[at]);
      const otherLeaves = others.map((it) => {
        const [found, other] = treeFlatten(it[at]);
        if (other.equals(spec)) return found;
        throw fxError("DynamicShapes", `the further inputs have another structure at ${name}: ${other}, not ${spec}`);
      });
      const dims = leaves.map((leaf, index) =>
        merge(
          leaf,
          otherLeaves.map((it) => it[index]),
        ),
      );
      return treeUnflatten(dims, spec);
    });
    return Object.fromEntries(argNames.map((name, at) => [name, merged[at]]));
  }

  /** Calls the program with each of these inputs, so that what it does not take is refused. */
  verify(program: ExportedProgram): void {
    const isProgram = (program as unknown) instanceof ExportedProgram;
    checkGiven("AdditionalInputs.verify", isProgram, "an ExportedProgram", "exportProgram(module, args) makes one");
    using module = program.module();
    for (const { args, kwargs } of this.#examples) module(...args, ...(Object.keys(kwargs).length > 0 ? [kwargs] : []));
  }
}

function checkInputs(what: string, argNames: readonly string[], inputs: readonly unknown[]): void {
  checkList(what, "argNames", argNames);
  checkList(what, "inputs", inputs);
}

function merge(value: unknown, others: readonly unknown[]): unknown {
  if (value instanceof Tensor) {
    if (!others.every((it) => it instanceof Tensor && it.shape.length === value.shape.length)) throw differs("types");
    return value.shape.map((size, dim) =>
      others.every((it) => (it as Tensor).shape[dim] === size) ? null : Dim.DYNAMIC,
    );
  }
  if (others.every((it) => it === value)) return null;
  if (Number.isInteger(value) && others.every(Number.isInteger)) return Dim.DYNAMIC;
  throw others.every((it) => typeof it === typeof value) ? differs("values") : differs("types");

  function differs(what: "types" | "values") {
    const shown = pythonText([value, ...others].map((it) => (it instanceof Tensor ? it.shape : it)));
    const so = what === "types" ? "so they cannot" : "but they cannot";
    return fxError(
      "DynamicShapes",
      `The following inputs were found to have differing ${what}, ${so} be marked as dynamic: ${shown}.`,
    );
  }
}
