/**
 * Modules as records: trees of graph modules, which the file format has, in the place of modules of any class.
 *
 * A record of a module without a graph has its class and plain properties in a note. So it needs no constructor to be
 * made again, as in Python's pickle, and the file has no code in it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { CodeGen } from "../graph/codegen/codegen.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { builtinClassNamed, builtinNameOf } from "../nn/builtin.ts";
import { type Attribute, hasHooks, Module } from "../nn/module.ts";
import { Parameter } from "../nn/parameter.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { fieldsOf, type Json, setFields } from "../fx/fields.ts";
import { type PackingJson, packingOf, restorePacking } from "./packing.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** A class of modules. */
export type ModuleClass = abstract new (...args: never[]) => Module;

/** Classes of modules that are none of `torch.nn`'s, by the name that stands for them in files. */
export type ModuleClasses = Readonly<Record<string, ModuleClass>>;

/** The key of the note. */
const NOTE = "tracefx.module";

/** What a note says; what is as it is by default is left out. */
interface Note {
  /** The name of the class, of a module without a graph. */
  readonly class?: string;
  readonly fields?: { readonly [name: string]: Json };
  /** How the inputs and outputs of a graph are nested. */
  readonly packing?: PackingJson;
  /** `false` in evaluation mode. */
  readonly training?: false;
  /** Buffers that the state dict leaves out. */
  readonly nonPersistent?: readonly string[];
  /** Parameters that want no gradients. */
  readonly frozen?: readonly string[];
  /** The path of the module that this very module stands at, too. */
  readonly same?: string;
  /** Attributes that are the very tensors which stand at these paths, too. */
  readonly ties?: { readonly [name: string]: string };
}

/** The record of a module and of all that it holds. */
export function recordOf(module: GraphModule, classes: ModuleClasses): GraphModule {
  return new Recorder(classes).record(module, "");
}

class Recorder {
  readonly #classes: ModuleClasses;
  readonly #paths = new Map<Module | Tensor, string>();

  constructor(classes: ModuleClasses) {
    this.#classes = classes;
  }

  record(module: Module, path: string): GraphModule {
    const known = this.#paths.get(module);
    if (known !== undefined) return withNote(new GraphModule(), { same: known });
    this.#paths.set(module, path);
    if (hasHooks(module)) throw refused(path, "has hooks", "remove them: functions cannot be saved");
    const res =
      module instanceof GraphModule ? graphRecord(module, path) : new GraphModule({}, new Graph(), module.className);
    const ties: [string, string][] = [];
    const [frozen, nonPersistent]: string[][] = [[], []];
    for (const [name, attribute] of module.attributes) {
      const inner = path === "" ? name : `${path}.${name}`;
      if (attribute.kind === "module") {
        res.attributes.set(name, { kind: "module", module: this.record(attribute.module, inner) });
        continue;
      }
      if (attribute.kind === "parameter" && !attribute.tensor.requiresGrad) frozen?.push(name);
      if (attribute.kind === "buffer" && attribute.persistent === false) nonPersistent?.push(name);
      const tied = this.#paths.get(attribute.tensor);
      if (tied !== undefined) ties.push([name, tied]);
      else this.#paths.set(attribute.tensor, inner);
      // A tensor that stands elsewhere too is there again, so that the record has all of its kind; its bytes are not.
      res.attributes.set(name, attribute);
    }
    return withNote(res, {
      ...(module instanceof GraphModule ? packingNote(module, path) : { class: this.#className(module, path) }),
      ...fieldsNote(module, path),
      ...(module.training ? {} : { training: false as const }),
      ...(nonPersistent?.length === 0 ? {} : { nonPersistent: nonPersistent as string[] }),
      ...(frozen?.length === 0 ? {} : { frozen: frozen as string[] }),
      ...(ties.length === 0 ? {} : { ties: Object.fromEntries(ties) }),
    });
  }

  #className({ constructor }: Module, path: string): string {
    const named = Object.entries(this.#classes).find(([, it]) => it === constructor)?.[0];
    if (named !== undefined) return named;
    const builtin = builtinNameOf(constructor);
    if (builtin !== undefined) return builtin;
    throw refused(
      path,
      `is of the class ${constructor.name}, which is none of torch.nn's`,
      `trace into it, or name the class here and when it is loaded: { classes: { ${constructor.name} } }`,
    );
  }
}

/** The record of a graph module, without its attributes. Its graph is a copy, which no module owns yet. */
function graphRecord(module: GraphModule, path: string): GraphModule {
  if (module.constructor !== GraphModule) {
    throw refused(path, `is of the class ${module.constructor.name}`, "save new GraphModule(module, module.graph)");
  }
  const graph = module.graph.clone();
  // How inputs are nested is in the note, if anywhere.
  graph.setCodegen(new CodeGen());
  const res = GraphModule.ofGraph(graph, module.className);
  for (const [key, value] of module.meta) res.meta.set(key, value);
  return res;
}

function fieldsNote(module: Module, path: string): Note {
  const fields = fieldsOf(module, (name) =>
    refused(path, `has the property \`${name}\``, "only plain values, dtypes and functions with a name can be saved"),
  );
  return Object.keys(fields).length === 0 ? {} : { fields };
}

function packingNote({ graph }: GraphModule, path: string): Note {
  const packing = packingOf(graph);
  if (packing === "none") return {};
  if (packing !== undefined) return { packing };
  throw refused(path, "has a code generator of its own", "graph.setCodegen(new CodeGen()) makes its inputs flat");
}

function withNote(record: GraphModule, note: Note): GraphModule {
  if (Object.keys(note).length > 0) record.meta.set(NOTE, JSON.stringify(note));
  return record;
}

/** What a module holds besides its class. */
export interface ModuleParts {
  /** Its plain properties, in the JSON that tracefx writes. */
  readonly fields?: { readonly [name: string]: Json };
  /** Whether it is in training mode, as it is by default. */
  readonly training?: boolean;
  readonly attributes?: Iterable<readonly [name: string, attribute: Attribute]>;
}

/**
 * Makes a module of its parts without calling the constructor of its class; a text is the name of a class of `torch.nn`.
 * It is what `toFolder` writes.
 *
 * @example
 * ```ts
 * const relu = remakeModule("ReLU", { fields: { inplace: false }, training: false });
 * ```
 */
export function remakeModule(kind: ModuleClass | string, parts: ModuleParts = {}): Module {
  checkOptions("remakeModule", parts, ["fields", "training", "attributes"]);
  const { fields = {}, training = true, attributes = [] } = parts;
  const isClass = typeof kind === "function" && kind.prototype instanceof Module;
  checkGiven("remakeModule", isClass || typeof kind === "string", "a class of modules, or the name of one of torch.nn");
  const found = typeof kind === "string" ? builtinClassNamed(kind) : kind;
  if (found === undefined) throw unknownClass(kind as string);
  const res = Reflect.construct(Module, [], found) as Module;
  for (const [name, attribute] of attributes) res.attributes.set(name, attribute);
  setFields(res, fields);
  res.training = training;
  return res;
}

function unknownClass(name: string, path?: string) {
  const subject = path === undefined ? "a module" : `the module \`${path}\``;
  return fxError("NotImplemented", `${subject} is of the class ${name}, which is not known here`, {
    help: `give the class: { classes: { ${name} } }`,
  });
}

/** Makes the modules of a record again. */
export function restore(record: GraphModule, classes: ModuleClasses): GraphModule {
  const res = new Restorer(classes).restore(record, "");
  if (res instanceof GraphModule) return res;
  throw malformed("the module at the root");
}

class Restorer {
  readonly #classes: ModuleClasses;
  readonly #found = new Map<string, Module | Tensor>();

  constructor(classes: ModuleClasses) {
    this.#classes = classes;
  }

  restore(record: GraphModule, path: string): Module {
    const note = noteOf(record, path);
    if (note.same !== undefined) return this.#at(note.same, Module, path);
    const res = note.class === undefined ? record : this.#make(note.class, path);
    this.#found.set(path, res);
    record.meta.delete(NOTE);
    for (const [name, attribute] of record.attributes) {
      const inner = path === "" ? name : `${path}.${name}`;
      res.attributes.set(name, this.#attribute(attribute, name, inner, note));
    }
    setFields(res, note.fields ?? {});
    if (note.packing !== undefined) {
      if (!(res instanceof GraphModule)) throw malformed(`\`${path}\``);
      res.graph.setCodegen(restorePacking(note.packing as unknown as Json));
    }
    res.training = note.training ?? true;
    return res;
  }

  #attribute(attribute: Attribute, name: string, path: string, note: Note): Attribute {
    if (attribute.kind === "module") {
      if (!(attribute.module instanceof GraphModule)) throw malformed(`\`${path}\``);
      return { kind: "module", module: this.restore(attribute.module, path) };
    }
    const tied = note.ties !== undefined && Object.hasOwn(note.ties, name) ? note.ties[name] : undefined;
    const tensor = tied === undefined ? tensorOf(attribute, name, note) : this.#tensorAt(tied, path);
    this.#found.set(path, tensor);
    if (attribute.kind !== "buffer") return { kind: attribute.kind, tensor };
    return { kind: "buffer", tensor, ...(note.nonPersistent?.includes(name) === true ? { persistent: false } : {}) };
  }

  #make(name: string, path: string): Module {
    const found = Object.hasOwn(this.#classes, name) ? this.#classes[name] : builtinClassNamed(name);
    if (found !== undefined) return remakeModule(found);
    throw unknownClass(name, path);
  }

  #at<T>(path: string, kind: abstract new (...args: never[]) => T, from: string): T {
    const found = this.#found.get(path);
    if (found instanceof kind) return found;
    throw malformed(`\`${from}\`, which is to be the same as \`${path}\``);
  }

  #tensorAt(path: string, from: string): Tensor {
    const found = this.#found.get(path);
    if (found === undefined || found instanceof Module) throw malformed(`\`${from}\`, which is to be \`${path}\` too`);
    return found;
  }
}

function tensorOf(attribute: Exclude<Attribute, { kind: "module" }>, name: string, note: Note): Tensor {
  if (attribute.kind !== "parameter") return attribute.tensor;
  return new Parameter(attribute.tensor, { requiresGrad: note.frozen?.includes(name) !== true });
}

/** The note of a record, checked: a file may come from anywhere. */
function noteOf(record: GraphModule, path: string): Note {
  const text = record.meta.get(NOTE);
  if (text === undefined) return {};
  let json: unknown;
  try {
    json = JSON.parse(String(text));
  } catch (cause) {
    throw malformed(`\`${path}\``, cause);
  }
  if (!isNote(json)) throw malformed(`\`${path}\``);
  return json;
}

function isNote(json: unknown): json is Note {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return false;
  const {
    class: name,
    fields,
    packing,
    training,
    nonPersistent,
    frozen,
    same,
    ties,
    ...others
  } = json as Record<string, unknown>;
  return (
    Object.keys(others).length === 0 &&
    [name, same].every(isText) &&
    [nonPersistent, frozen].every(isTexts) &&
    [fields, packing, ties].every(isObject) &&
    Object.values(ties ?? {}).every(isText) &&
    (training === undefined || training === false)
  );
}

function isText(it: unknown): boolean {
  return it === undefined || typeof it === "string";
}

function isTexts(it: unknown): boolean {
  return it === undefined || (Array.isArray(it) && it.every((text) => typeof text === "string"));
}

function isObject(it: unknown): boolean {
  return it === undefined || (typeof it === "object" && it !== null && !Array.isArray(it));
}

/** The refusal to save a module. */
export function refused(path: string, what: string, help: string) {
  const subject = path === "" ? "the module" : `the module \`${path}\``;
  return fxError("GraphArgument", `${subject} ${what}, and cannot be saved`, { help });
}

function malformed(what: string, cause?: unknown) {
  return fxError("WireMalformed", `what the file says of ${what} is not what tracefx writes`, { cause });
}
