/**
 * `MODS`: the tree of modules, parents before children, breadth first. Graphs stand in the same order.
 *
 * @module
 */
import { ATTRIBUTE, MAX_DEPTH } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Attribute } from "../nn/module.ts";
import type { Cursor } from "./cursor.ts";
import { DEFAULT_LIMITS, type EncodeOptions } from "./options.ts";
import type { Strings, StringWriter } from "./strings.ts";
import type { Tensors, TensorWriter } from "./tensors.ts";
import type { WordWriter } from "./writer.ts";

type TensorKind = Exclude<Attribute["kind"], "module">;

/** The kinds of tensors, by the numbers that they have in the format. */
export const KINDS: readonly TensorKind[] = ["parameter", "buffer", "constant"];

/** The modules of a tree, in the order in which a file has them. One that stands in two places is there twice. */
export function modulesOf(root: GraphModule): GraphModule[] {
  const modules = [root];
  let level = 0;
  for (let depth = 0; level < modules.length; depth++) {
    if (depth >= MAX_DEPTH) throw fxError("LimitExceeded", `modules are nested deeper than ${MAX_DEPTH} levels`);
    const end = modules.length;
    if (end > DEFAULT_LIMITS.modules) {
      throw fxError("LimitExceeded", `there are more than ${DEFAULT_LIMITS.modules} modules`);
    }
    for (; level < end; level++) {
      for (const attribute of (modules[level] as GraphModule).attributes.values()) {
        if (attribute.kind === "module" && attribute.module instanceof GraphModule) modules.push(attribute.module);
      }
    }
  }
  return modules;
}

/** Writes the tree, without the graphs, and gathers its tensors. */
export function writeModules(
  words: WordWriter,
  strings: StringWriter,
  tensors: TensorWriter,
  modules: readonly GraphModule[],
  { leafModules = "refuse" }: EncodeOptions,
): void {
  words.count(modules.length);
  let next = 1;
  for (const module of modules) {
    const attributes = [...module.attributes].filter(([name, it]) => isWritten(name, it, leafModules));
    const notes = [...module.meta].filter((it): it is [string, string] => typeof it[1] === "string");
    strings.write(words, module.className);
    words.count(attributes.length);
    words.count(notes.length);
    for (const [name, attribute] of attributes) {
      strings.write(words, name);
      if (attribute.kind === "module") words.tagged(ATTRIBUTE.MODULE, next++);
      else words.tagged(numberOf(attribute.kind), tensors.push(attribute.tensor));
    }
    for (const [key, text] of notes) {
      strings.write(words, key);
      strings.write(words, text);
    }
  }
}

/** Reads the tree; the graphs are empty until they are read. The root comes first. */
export function readModules(cursor: Cursor, strings: Strings, tensors: Tensors, maxModules: number): GraphModule[] {
  const count = cursor.count(3, "modules");
  if (count === 0 || count > maxModules) {
    throw cursor.exceeds(`there are ${count} modules, and 1 to ${maxModules} are allowed`);
  }
  const modules = [new GraphModule()];
  const depths = [0];
  for (let at = 0; at < count; at++) {
    // Children are announced by their parents, so each module but the root has exactly one.
    const module = modules[at];
    const depth = depths[at];
    if (module === undefined || depth === undefined) throw cursor.fail(`module ${at} is in no other module`);
    module.className = strings.next(cursor);
    const [attributeCount, noteCount] = [cursor.word(), cursor.word()];
    cursor.checkCount(attributeCount, 2, "attributes");
    for (let attribute = 0; attribute < attributeCount; attribute++) {
      const name = strings.next(cursor);
      if (module.attributes.has(name)) throw cursor.fail(`the attribute \`${name}\` is there twice`);
      const word = cursor.word();
      const [tag, index] = [word & 0xff, word >>> 8];
      const kind = KINDS[tag];
      if (kind !== undefined) {
        module.attributes.set(name, { kind, tensor: tensors.take(cursor, index) });
      } else if (tag === ATTRIBUTE.MODULE) {
        if (index !== modules.length || index >= count || depth + 1 >= MAX_DEPTH) {
          throw cursor.fail(`module ${index} stands where module ${modules.length} was expected`);
        }
        const child = new GraphModule();
        modules.push(child);
        depths.push(depth + 1);
        module.attributes.set(name, { kind: "module", module: child });
      } else throw cursor.fail(`there is no attribute of kind ${tag}`);
    }
    cursor.checkCount(noteCount, 2, "notes");
    for (let note = 0; note < noteCount; note++) {
      const [key, text] = [strings.next(cursor), strings.next(cursor)];
      if (module.meta.has(key)) throw cursor.fail("a key of the notes is there twice");
      module.meta.set(key, text);
    }
  }
  cursor.finish();
  return modules;
}

function isWritten(name: string, attribute: Attribute, leafModules: "refuse" | "omit"): boolean {
  if (attribute.kind !== "module" || attribute.module instanceof GraphModule) return true;
  if (leafModules === "omit") return false;
  throw fxError("GraphArgument", `the module \`${name}\` has no graph that could be written`, {
    help: 'trace it, or pass leafModules: "omit" and add it again after reading',
  });
}

/** The number of a kind of tensors. */
export function numberOf(kind: TensorKind): number {
  switch (kind) {
    case "parameter":
      return ATTRIBUTE.PARAMETER;
    case "buffer":
      return ATTRIBUTE.BUFFER;
    case "constant":
      return ATTRIBUTE.CONSTANT;
  }
}
