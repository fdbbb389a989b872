/**
 * Exports of functions and modules by what they are called with: `torch.export.experimental`.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { checkFunction, checkGiven, checkOptions, checkText } from "../base/given.ts";
import { Module, unboundForwardOf } from "../nn/module.ts";
import { checkInsteadOf } from "../trace/subgraph.ts";
import type { DynamicShapes } from "./dynamicShapes.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import { exportProgram } from "./exportProgram.ts";
import { callArguments } from "./moduleInputs.ts";
import { type PackageOptions, packagePt2 } from "./packages.ts";
import type { ProgramModule } from "./programModule.ts";

/** How {@link stickyExport} exports. */
export interface StickyExportOptions<A extends readonly unknown[] = readonly unknown[]> {
  /** What is said of the sizes of the arguments of a call: the `dynamicShapes` of {@link exportProgram}. */
  readonly dynamicShapesCallback?: (...args: A) => DynamicShapes | undefined;
}

/** A `forward` that exports its module; {@link stickyExport} makes one. */
export interface StickyForward<A extends readonly unknown[], R> {
  (...args: A): R;
  /** The program of the last call, which PyTorch has as its `module()`. */
  readonly exportedArtifact: ExportedProgram | undefined;
}

/**
 * A `forward` that exports the module with the arguments of each call, and gives what the program gives: `_sticky_export`. It is for modules
 * that something larger calls, which finds the arguments.
 *
 * @example
 * ```ts
 * const forward = stickyExport(model.decoder, { dynamicShapesCallback: () => ({ tokens: { 1: Dim.DYNAMIC } }) });
 * model.decoder.forward = forward;
 * model.generate(prompt);
 * const program = forward.exportedArtifact;
 * ```
 */
export function stickyExport<M extends Module>(
  model: M,
  options: StickyExportOptions<Parameters<M["forward"]>> = {},
): StickyForward<Parameters<M["forward"]>, ReturnType<M["forward"]>> {
  checkGiven("stickyExport", model instanceof Module, "a module", "give the module, not its forward");
  checkOptions("stickyExport", options, ["dynamicShapesCallback"]);
  const { dynamicShapesCallback: callback } = options;
  if (callback !== undefined) checkFunction("stickyExport", "dynamicShapesCallback", callback);
  const original = unboundForwardOf(model);
  let exportedArtifact: ExportedProgram | undefined;
  const wrapper = (...args: Parameters<M["forward"]>): ReturnType<M["forward"]> => {
    const shapes = callback?.(...args);
    // The export calls the module, and must not come back here.
    const wrapped = Object.getOwnPropertyDescriptor(model, "forward");
    Object.defineProperty(model, "forward", { value: original, configurable: true, writable: true });
    try {
      exportedArtifact = exportCall(model, args, shapes ?? null);
    } finally {
      if (wrapped === undefined) Reflect.deleteProperty(model, "forward");
      else Object.defineProperty(model, "forward", wrapped);
    }
    return exportedArtifact.module()(...args) as ReturnType<M["forward"]>;
  };
  return Object.defineProperty(wrapper, "exportedArtifact", { get: () => exportedArtifact }) as StickyForward<
    Parameters<M["forward"]>,
    ReturnType<M["forward"]>
  >;
}

/** What a method of an {@link ExportPackage} was exported to. */
export interface ExportMethod {
  /** Programs for arguments that their overload takes, by its name. */
  readonly overloads: ReadonlyMap<string, ExportedProgram>;
  /** Programs for arguments that no overload takes. */
  readonly fallbacks: readonly ExportedProgram[];
}

/**
 * Which arguments an overload takes: it gives the `dynamicShapes` of the export, or nothing where all sizes are those of the arguments, and
 * `false` for arguments that the overload does not take. An `AssertionError` says that, too, as in PyTorch.
 */
export type OverloadSpec<A extends readonly unknown[]> = (...args: A) => DynamicShapes | false | undefined | void;

/** How {@link ExportPackage.exporter} exports what no overload takes. */
export interface ExporterOptions {
  /** `"once"`, the default, exports the first such call and refuses others; `"error"` refuses all. */
  readonly fallback?: "once" | "error";
}

/** A function that exports another one and calls the program. */
export interface Exporter<A extends readonly unknown[], R> {
  (...args: A): R;
  /** Adds an overload, which is exported by the first call that it takes. Those that were added first are asked first. */
  defineOverload(overload: string, spec: OverloadSpec<A>): this;
}

/**
 * Programs of several functions, each with overloads for several kinds of arguments: `_ExportPackage`. A function is exported when it is called,
 * so that whatever calls it finds the arguments. PyTorch's package is compiled to C++; this one is saved as an archive of programs.
 *
 * @example
 * ```ts
 * const models = new ExportPackage();
 * const decode = models
 *   .exporter("decoder", decoder)
 *   .defineOverload("prefill", (tokens: Tensor) => tokens.size(1) > 1 && { tokens: { 1: Dim("n", { min: 2 }) } })
 *   .defineOverload("step", (tokens: Tensor) => tokens.size(1) === 1 && null);
 * generate(decode, prompt);
 * await writeFile("models.pt2", models.package());
 * ```
 */
export class ExportPackage {
  readonly #methods = new Map<string, ExportMethod>();

  /** What the methods were exported to, by name. */
  get methods(): ReadonlyMap<string, ExportMethod> {
    return this.#methods;
  }

  /**
   * A function that exports another one, or a module, when it is called with arguments that are new, and gives what the program gives. The
   * specs of a module's overloads have it as `this`.
   */
  exporter<A extends readonly unknown[], R>(
    method: string,
    fn: (...args: A) => R,
    options: ExporterOptions = {},
  ): Exporter<A, R> {
    checkText("exporter", "the name of the method", method);
    checkFunction("exporter", "fn", fn);
    checkOptions("exporter", options, ["fallback"]);
    const { fallback = "once" } = options;
    if (fallback !== "once" && fallback !== "error") {
      throw fxError("InvalidOption", `Unknown fallback policy: ${String(fallback)}`, {
        help: 'it is "once" or "error"',
      });
    }
    const exports = new MethodExports(fn, fallback);
    this.#methods.set(method, exports);
    const res = (...args: A): R => exports.call(args) as R;
    const defineOverload = (overload: string, spec: OverloadSpec<A>): Exporter<A, R> => {
      exports.define(overload, spec);
      return exporter;
    };
    const exporter = Object.assign(res, { defineOverload }) as Exporter<A, R>;
    return exporter;
  }

  /** The programs of overloads, by `method:overload`. */
  *methodOverloads(): IterableIterator<[name: string, program: ExportedProgram]> {
    for (const [method, { overloads }] of this.#methods) {
      for (const [overload, program] of overloads) yield [`${method}:${overload}`, program];
    }
  }

  /**
   * The bytes of an archive with all programs: those of overloads as `method__overload`, and one that no overload took as `method`.
   * {@link loadPt2} reads it.
   */
  package(options: PackageOptions = {}): Bytes {
    checkOptions("package", options, ["extraFiles", "root"]);
    const all = new Map<string, ExportedProgram>();
    const add = (name: string, program: ExportedProgram): void => {
      if (!all.has(name)) all.set(name, program);
      else {
        throw fxError("InvalidArgument", `two programs of the package are named \`${name}\``, {
          help: "give the method or the overload another name",
        });
      }
    };
    for (const [method, { overloads, fallbacks }] of this.#methods) {
      for (const [overload, program] of overloads) add(`${method}__${overload}`, program);
      for (const program of fallbacks) add(method, program);
    }
    checkGiven("package", all.size > 0, "a call of an exporter before it", "what is not called is not exported");
    return packagePt2(Object.fromEntries(all), options);
  }
}

/** The exports of one method. */
class MethodExports implements ExportMethod {
  readonly overloads = new Map<string, ExportedProgram>();
  readonly fallbacks: ExportedProgram[] = [];
  readonly #fn: (...args: never[]) => unknown;
  readonly #module: Module;
  readonly #fallback: "once" | "error";
  readonly #specs = new Map<string, OverloadSpec<never>>();
  readonly #called = new WeakMap<ExportedProgram, ProgramModule>();

  constructor(fn: (...args: never[]) => unknown, fallback: "once" | "error") {
    this.#fn = fn;
    this.#module = fn instanceof Module ? fn : new Wrapper(fn);
    this.#fallback = fallback;
  }

  define(overload: string, spec: OverloadSpec<never>): void {
    if (this.#specs.has(overload)) throw fxError("InvalidArgument", `Overload '${overload}' already exists in specs`);
    checkFunction("defineOverload", "spec", spec);
    if (!/^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(overload)) {
      throw fxError("InvalidArgument", `Overload '${overload}' is not a valid Python identifier`, {
        help: "begin with a letter, and use letters, digits and underscores",
      });
    }
    this.#specs.set(overload, spec);
  }

  call(args: readonly unknown[]): unknown {
    for (const [overload, spec] of this.#specs) {
      const shapes = this.#asked(spec, args);
      if (shapes === false) continue;
      const known = this.overloads.get(overload);
      const program = known ?? exportCall(this.#module, args, shapes ?? null);
      this.overloads.set(overload, program);
      return this.#run(program, args);
    }
    if (this.#fallback === "error") throw this.#refused("fallback ", " when fallback policy is set to 'error',");
    if (this.fallbacks.length > 0) throw this.#refused("", " more than once, ");
    const program = exportCall(this.#module, args, null);
    this.fallbacks.push(program);
    return this.#run(program, args);
  }

  #asked(spec: OverloadSpec<never>, args: readonly unknown[]): ReturnType<OverloadSpec<never>> {
    try {
      return Reflect.apply(spec, this.#fn, args) as ReturnType<OverloadSpec<never>>;
    } catch (error) {
      if (error instanceof Error && error.name === "AssertionError") return false;
      throw error;
    }
  }

  #run(program: ExportedProgram, args: readonly unknown[]): unknown {
    const module = this.#called.get(program) ?? program.module();
    this.#called.set(program, module);
    return module(...args);
  }

  #refused(kind: string, why: string): FxError {
    const name = this.#fn instanceof Module ? this.#fn.className : this.#fn.name || "the function";
    const rest = "please specify an overload or adjust the fallback policy.";
    return fxError("InvalidArgument", `Exporter: Cannot export ${kind}${name}${why}${rest}`, {
      help: "defineOverload(name, spec) adds an overload",
    });
  }
}

/** A function as a module, with PyTorch's names of its arguments. */
class Wrapper extends Module {
  override readonly forward: (...args: never[]) => unknown;

  constructor(fn: (...args: never[]) => unknown) {
    super();
    this.forward = (...args) => fn(...args);
    checkInsteadOf(unboundForwardOf(this), fn);
  }
}

/** Exports a module with the arguments of a call. */
function exportCall(module: Module, given: readonly unknown[], dynamicShapes: DynamicShapes): ExportedProgram {
  const { args, kwargs } = callArguments(module, given);
  return exportProgram(module, args, kwargs, { dynamicShapes });
}
