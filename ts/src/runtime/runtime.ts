/**
 * The small runtime: files with saved plans, which `tracefx compile model.pt2 model.fxg` makes, run without the engine. Its module of
 * WebAssembly has the kernels of inference and what runs a plan; no graph, no compiler, no reader of archives.
 *
 * @example
 * ```ts
 * import { load, tensor } from "tracefx/runtime";
 *
 * const model = await load(new URL("./digits.fxg", import.meta.url));
 * const logits = model(tensor(pixels, { shape: [1, 1, 8, 8] }));
 * ```
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { builtinModule } from "../base/builtinModule.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import type { ModuleSource } from "../engine/module.ts";
import type { TreeSpec } from "../export/program.ts";
import { flattenCall, unflatten } from "../export/tree.ts";
import { tensor, type TensorInput } from "../tensor/construct.ts";
import { HostStorage } from "../tensor/storage.ts";
import { moveTensor, Tensor, tensorBytes, tensorStorage } from "../tensor/tensor.ts";
import type { PartSources } from "../engine/parts.ts";
import type { Variant } from "../engine/relaxed.ts";
import { begin, type Call, call, generation, memory, type Model, type RuntimePart } from "./module.ts";

export { FxError } from "../base/errors.ts";
export { tuple } from "../graph/args.ts";
export { tensor, tensorFromBytes } from "../tensor/construct.ts";
export { Tensor } from "../tensor/tensor.ts";

/** Where a model is: its bytes, a URL, a path (where there are files), a Blob, or the response to a request. */
export type RuntimeSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response;

/** How to open a model. */
export interface RuntimeOptions {
  /** The runtime's module itself or where it lies, for hosts where the package cannot find it. Only the first call has it. */
  readonly wasm?: ModuleSource | Promise<ModuleSource>;
  /**
   * When `rare` is fetched, which has what plans seldom call: by the first call that needs it (`"lazy"`), with the module (`"eager"`), or it is
   * given by name. Only the first call has it.
   */
  readonly parts?: PartSources<RuntimePart>;
  /**
   * `"simd"` to do without relaxed SIMD, which is taken where the host has it. Results differ within the tolerances of PyTorch, and not at all where the plan was
   * compiled with `--precision strict`. Only the first call has it.
   */
  readonly variant?: Variant;
  /** Stops the fetching. */
  readonly signal?: AbortSignal;
}

/** What an input is in the plans. */
interface Input {
  readonly name: string;
  readonly kind: "tensor" | "int" | "float" | "bool" | "str" | "None";
  readonly dtype: DType | null;
  /** The sizes in each plan. */
  readonly shapes: readonly (readonly number[])[];
  /** Whether a call changes it. */
  readonly isWritten: boolean;
}

interface Signature {
  readonly inSpec: TreeSpec | null;
  readonly outSpec: TreeSpec | null;
  readonly namedtupleFields: Readonly<Record<string, readonly string[]>>;
  readonly inputs: readonly Input[];
}

/**
 * Opens a file with saved plans, and the runtime's module with the first one; both are fetched at the same time. No code of the file
 * is run, and all of its plans are checked before anything runs.
 *
 * @example
 * ```ts
 * const model = await load("https://example.com/digits.fxg");
 * const fromPicker = await load(input.files[0]);
 * ```
 */
export async function load(source: RuntimeSource, options: RuntimeOptions = {}): Promise<RuntimeModule> {
  checkOptions("load", options, ["wasm", "parts", "variant", "signal"]);
  const kinds = [Uint8Array, ArrayBuffer, URL, Blob, Response];
  const isSource = typeof source === "string" || kinds.some((it) => source instanceof it);
  checkGiven("load", isSource, "the bytes of a file, a URL, a path, a Blob or a Response");
  const [bytes] = await Promise.all([read(source, options.signal), begin(options)]);
  const model = call((glue) => glue.Model.open(bytes));
  try {
    const signature = JSON.parse(model.signature()) as Signature;
    checkSignature(signature);
    return new RuntimeModule(model, signature);
  } catch (cause) {
    model.free();
    throw fxError("WireMalformed", "the signature of the saved plans is damaged", { cause });
  }
}

/** Throws where the text of a file is no signature. */
function checkSignature({ inSpec, outSpec, namedtupleFields, inputs }: Signature): void {
  const areTrees = [inSpec, outSpec].every((it) => it === null || isTree(it));
  const areInputs = inputs.every((it) => typeof it.name === "string" && it.shapes.every(Array.isArray));
  if (areTrees && areInputs && Object.values(namedtupleFields).every(Array.isArray)) return;
  throw new TypeError("a part of it is something else");
}

function isTree({ type, context, children }: TreeSpec): boolean {
  const areTexts = [type, context].every((it) => it === undefined || typeof it === "string");
  return areTexts && children.every(isTree);
}

/** What is inside a module, out of the way of its call signature. */
interface Inside {
  model: Model | undefined;
  readonly generation: number;
  readonly signature: Signature;
  readonly fields: ReadonlyMap<string, readonly string[]>;
}

const insides = new WeakMap<RuntimeModule, Inside>();

/**
 * A model of a file, called with the inputs that the exported module's `forward` takes: positional arguments, then one object with the
 * keyword arguments where there are any. It gives what `forward` gives. Nested arrays and typed arrays are taken where a tensor stands:
 * they have its dtype and its sizes. Buffers that a call changes keep their values for later ones, and inputs that it changes are changed.
 *
 * @example
 * ```ts
 * using model = await load(bytes);
 * const logits = model(image) as Tensor;
 * ```
 */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- an instance is a function, which a class cannot declare
export interface RuntimeModule {
  (...args: unknown[]): unknown;
}

/** A model of a file, which can be called; what a call takes and gives is told above. */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- as above
export class RuntimeModule implements Disposable {
  constructor(model: Model, signature: Signature) {
    const self = ((...args: unknown[]) => self.forward(...args)) as unknown as RuntimeModule;
    Object.setPrototypeOf(self, new.target.prototype);
    insides.set(self, {
      model,
      generation: generation(),
      signature,
      fields: new Map(Object.entries(signature.namedtupleFields)),
    });
    // An instance is a function, so that it can be called.
    return self;
  }

  /** Calls the model; the module itself is the same function. */
  forward(...args: unknown[]): unknown {
    const { signature, fields } = inside(this);
    const types = { namedtupleFields: fields };
    if (signature.inSpec === null || signature.outSpec === null) {
      throw fxError("InputStructure", "the program does not say what its arguments are", { help: "call runFlat" });
    }
    return unflatten(this.runFlat(flattenCall(args, signature.inSpec, types)), signature.outSpec, types);
  }

  /** Calls the model with the inputs as a flat list, and gives the outputs as one. */
  runFlat(leaves: readonly unknown[]): unknown[] {
    const { model, signature } = inside(this);
    if (leaves.length !== signature.inputs.length) {
      throw fxError("InputCount", `the program takes ${signature.inputs.length} inputs, and got ${leaves.length}`);
    }
    const inputs = leaves.map((leaf, at) => given(leaf, signature.inputs[at] as Input));
    checkApart(inputs, signature.inputs);
    return call((glue) => {
      const run = new glue.Call();
      let outputs: unknown[];
      try {
        inputs.forEach((input, at) => put(run, input, signature.inputs[at] as Input));
        model.run(run);
        inputs.forEach((input, at) => {
          const address = input instanceof Tensor ? run.changed(at) : 0;
          if (address !== 0) moveTensor(input as Tensor, new HostStorage(copied(address, (input as Tensor).nbytes)));
        });
        outputs = Array.from({ length: run.n_outputs() }, (_, at) => taken(run, at));
      } catch (error) {
        // After a trap, and where a part was missing, there is nobody to give it back to.
        if (!(error instanceof WebAssembly.RuntimeError || error instanceof WebAssembly.Exception)) run.free();
        throw error;
      }
      run.free();
      return outputs;
    });
  }

  /** Gives the memory of the model back. What is never disposed of is freed with its module, in time. */
  dispose(): void {
    const own = insides.get(this);
    // What a trap took is not there to be freed.
    if (own?.generation === generation()) own.model?.free();
    if (own !== undefined) own.model = undefined;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

function inside(module: RuntimeModule): Inside & { readonly model: Model } {
  const own = insides.get(module);
  if (own?.model === undefined) throw fxError("Disposed", "the model was disposed", { help: "load it again" });
  if (own.generation !== generation()) {
    throw fxError("Disposed", "the model was lost when the runtime was made anew", { help: "load it again" });
  }
  return own as Inside & { readonly model: Model };
}

/** An input as the plans take it. */
function given(leaf: unknown, input: Input): unknown {
  if (input.kind !== "tensor" || leaf instanceof Tensor) return leaf;
  if (input.dtype !== null && (Array.isArray(leaf) || ArrayBuffer.isView(leaf)) && !input.isWritten) {
    const isAlike = (shape: readonly number[]): boolean =>
      shape.reduce((product, size) => product * size, 1) === (leaf as ArrayLike<unknown>).length;
    const shape = ArrayBuffer.isView(leaf) ? (input.shapes.find(isAlike) ?? input.shapes[0]) : undefined;
    return tensor(leaf as TensorInput, { dtype: input.dtype, ...(shape === undefined ? {} : { shape }) });
  }
  const found = leaf === null ? "null" : typeof leaf;
  throw fxError("InputType", `the input ${input.name} should be a tensor and is ${found}`, {
    help: "tensor([[1, 2]]) makes a tensor of numbers",
  });
}

/** Refuses tensors that a call changes and that others look at, who would not see it. */
function checkApart(inputs: readonly unknown[], known: readonly Input[]): void {
  const storages = inputs.map((it) => (it instanceof Tensor ? tensorStorage(it) : undefined));
  known.forEach(({ name, isWritten }, at) => {
    const own = storages[at];
    if (!isWritten || own === undefined) return;
    const isAlone = own instanceof HostStorage && storages.every((it, other) => other === at || it !== own);
    if (isAlone) return;
    throw fxError("InputType", `a call changes the input ${name}, which shares its memory or is the engine's`, {
      help: "give a tensor of its own: tensorFromBytes(x.dtype, x.shape, bytes)",
    });
  });
}

/** Puts an input into a call. */
function put(run: Call, value: unknown, { name, kind }: Input): void {
  if (value instanceof Tensor) {
    const bytes = tensorBytes(value);
    const address = run.tensor(DTYPES[value.dtype].id, Uint32Array.from(value.shape));
    memory(address, bytes.length).set(bytes);
  } else if (value === null || value === undefined) run.none();
  else if (typeof value === "boolean") run.bool(value);
  else if (typeof value === "string") run.string(value);
  else if (typeof value === "bigint" || (typeof value === "number" && kind === "int" && Number.isInteger(value))) {
    const int = BigInt(value);
    if (BigInt.asIntN(64, int) !== int) throw fxError("InputType", `the input ${name} does not fit 64 bits: ${int}`);
    run.int(int);
  } else if (typeof value === "number") run.float(value);
  else throw fxError("InputType", `the input ${name} should be of the kind ${kind} and is ${typeof value}`);
}

const NAMES = Object.keys(DTYPES) as DType[];

/** An output of a call, in JavaScript's memory. */
function taken(run: Call, at: number): unknown {
  const [kind, id, address, ...shape] = run.output(at);
  if (kind === 1) {
    const dtype = NAMES.find((it) => DTYPES[it].id === id) as DType;
    const n = shape.reduce((product, size) => product * size, DTYPES[dtype].size);
    return new Tensor(dtype, shape, new HostStorage(copied(address as number, n)));
  }
  if (kind === 0) return null;
  if (kind === 2) return run.number(at);
  const int = run.integer(at);
  if (kind === 3) return int !== 0n;
  return Number.isSafeInteger(Number(int)) ? Number(int) : int;
}

function copied(address: number, length: number): Uint8Array {
  return memory(address, length).slice();
}

async function read(source: RuntimeSource, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  const file = typeof source === "string" || source instanceof URL ? fileOf(String(source)) : undefined;
  try {
    if (file !== undefined) return new Uint8Array(await file.read({ signal }));
    const response =
      source instanceof Response ? source : await fetch(source as string | URL, { signal: signal ?? null });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
    throw fxError("Io", `the server answered ${response.status} for ${response.url}`);
  } catch (cause) {
    if (signal?.aborted === true || (cause instanceof Error && "kind" in cause)) throw cause;
    throw fxError("Io", `cannot read ${source instanceof Response ? source.url : String(source)}`, { cause });
  }
}

/** What reads a file, where there are files and this is the place of one: a path, or a URL of one. */
function fileOf(
  place: string,
): { read(options: { signal: AbortSignal | undefined }): Promise<Uint8Array> } | undefined {
  const fs = builtinModule("node:fs/promises");
  if (fs === undefined || /^(?!file:)[a-z][a-z0-9+.-]+:/i.test(place)) return undefined;
  return { read: ({ signal }) => fs.readFile(place.startsWith("file:") ? new URL(place) : place, { signal }) };
}
