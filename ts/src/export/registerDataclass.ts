/**
 * Classes whose instances are their fields, as inputs and outputs of programs: `torch.export.register_dataclass`.
 *
 * @module
 */
import { checkFunction, checkOptions } from "../base/given.ts";
import { registerPytreeNode } from "../trace/pytree.ts";

/** How {@link registerDataclass} registers a class. */
export interface DataclassOptions {
  /** The fields; without it, those that an instance has when it is flattened. */
  readonly fieldNames?: readonly string[];
  /** What programs call the type; whoever reads them registers a class of the same name. The name of the class without it. */
  readonly serializedTypeName?: string;
}

/**
 * Makes the instances of a class containers of their fields, so that programs take and give them:
 * `torch.export.register_dataclass`. Fields that are `null` or `undefined` are no parts. An instance is made again without
 * calling the constructor. The fields are written to files as PyTorch writes those of a dataclass.
 *
 * @example
 * ```ts
 * class Batch {
 *   constructor(readonly image: Tensor, readonly mask: Tensor | null) {}
 * }
 * registerDataclass(Batch);
 * const program = exportProgram(model, [new Batch(image, null)]);
 * ```
 */
export function registerDataclass<T extends object>(
  container: abstract new (...args: never[]) => T,
  options: DataclassOptions = {},
): void {
  checkFunction("registerDataclass", "container", container);
  checkOptions("registerDataclass", options, ["fieldNames", "serializedTypeName"]);
  const { fieldNames, serializedTypeName = container.name } = options;
  type Names = readonly [given: readonly string[], none: readonly string[]];
  registerPytreeNode<T>(
    container,
    {
      flatten: (it) => {
        const values = it as Readonly<Record<string, unknown>>;
        const names = fieldNames ?? Object.keys(values);
        const isGiven = (name: string): boolean => values[name] !== null && values[name] !== undefined;
        const given = names.filter(isGiven);
        return [given.map((name) => values[name]), [given, names.filter((name) => !isGiven(name))] satisfies Names];
      },
      unflatten: (parts, context) => {
        const [given, none] = context as Names;
        const fields = [...given.map((name, at) => [name, parts[at]]), ...none.map((name) => [name, null])];
        return Object.assign(Object.create(container.prototype as object) as T, Object.fromEntries(fields));
      },
      names: (context) => (context as Names)[0],
    },
    serializedTypeName,
  );
}
