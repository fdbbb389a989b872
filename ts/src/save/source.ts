/**
 * Graph modules as a JavaScript module that makes them again: readable code, and tensors by name.
 *
 * @module
 */
import { CodeNames } from "../graph/codegen/globals.ts";
import { stringLiteral } from "../graph/codegen/text.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { hasHooks, type Module } from "../nn/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { fieldsOf } from "../fx/fields.ts";
import { packingOf } from "./packing.ts";
import { refused } from "./records.ts";

/** A module as source, and the tensors that it asks for by name. */
export interface ModuleSource {
  readonly code: string;
  readonly tensors: ReadonlyMap<string, Tensor>;
}

/** The source of a module. Its tensors are read from the file of this name beside it. */
export function sourceOf(module: GraphModule, stateFile: string): ModuleSource {
  const writer = new SourceWriter();
  const root = writer.module(module, "");
  return { code: writer.finish(root, stateFile), tensors: writer.tensors };
}

class SourceWriter {
  /** The tensors by the path under which they were met first. */
  readonly tensors = new Map<string, Tensor>();
  readonly #imports = new Set(["init", "readSafetensors", "remakeModule"]);
  readonly #names = new CodeNames([]);
  readonly #classes: string[] = [];
  readonly #statements: string[] = [];
  /** The variables of what was written; of a module that is being written, none yet. */
  readonly #variables = new Map<Module | Tensor, string | undefined>();

  constructor() {
    for (const name of ["init", "readSafetensors", "remakeModule", "functionNamed", "Module", "Parameter"]) {
      this.#names.reserve(name);
    }
    for (const name of ["tensors", "read"]) this.#names.reserve(name);
  }

  /** Writes a module and all that it holds, and gives the variable that it is in. */
  module(module: Module, path: string): string {
    const known = this.#variables.get(module);
    if (known !== undefined) return known;
    if (this.#variables.has(module))
      throw refused(path, "holds itself", "a module that holds itself cannot be written as code");
    this.#variables.set(module, undefined);
    if (hasHooks(module)) throw refused(path, "has hooks", "remove them: functions cannot be saved");
    const attributes = Array.from(module.attributes, ([name, attribute]) => {
      const inner = path === "" ? name : `${path}.${name}`;
      if (attribute.kind === "module") {
        return `[${stringLiteral(name)}, { kind: "module", module: ${this.module(attribute.module, inner)} }]`;
      }
      const persistent = attribute.kind === "buffer" && attribute.persistent === false ? ", persistent: false" : "";
      const tensor = this.#tensor(attribute.tensor, inner, attribute.kind === "parameter");
      return `[${stringLiteral(name)}, { kind: ${stringLiteral(attribute.kind)}, tensor: ${tensor}${persistent} }]`;
    });
    const parts = [
      ...fieldsPart(module, path),
      ...(module.training ? [] : ["  training: false,"]),
      ...(attributes.length === 0 ? [] : ["  attributes: [", ...attributes.map((it) => `    ${it},`), "  ],"]),
    ];
    const kind = module instanceof GraphModule ? this.#class(module, path) : className(module, path);
    return this.#declare(
      module,
      path,
      `remakeModule(${kind}, {${parts.length === 0 ? "" : `\n${parts.join("\n")}\n`}})`,
    );
  }

  /** The whole module. */
  finish(root: string, stateFile: string): string {
    const lines = [
      "// Made by tracefx. It runs as it is: import model from this file, and call model.forward(...).",
      `import { ${[...this.#imports].toSorted().join(", ")} } from "tracefx";`,
      "",
      "await init();",
      "",
      ...this.#classes.flatMap((it) => [it, ""]),
      `const { tensors } = readSafetensors(await read(new URL(${stringLiteral(stateFile)}, import.meta.url)));`,
      ...this.#statements,
      "",
      `export default ${root};`,
      "",
      "async function read(url) {",
      '  if (url.protocol !== "file:") return (await fetch(url)).arrayBuffer();',
      '  const { readFile } = await import("node:fs/promises");',
      "  return readFile(url);",
      "}",
    ];
    return `${lines.join("\n")}\n`;
  }

  #tensor(tensor: Tensor, path: string, isParameter: boolean): string {
    const known = this.#variables.get(tensor);
    if (known !== undefined) return known;
    this.tensors.set(path, tensor);
    const read = `tensors.get(${stringLiteral(path)})`;
    if (!isParameter) return this.#declare(tensor, path, read);
    this.#imports.add("Parameter");
    const options = tensor.requiresGrad ? "" : ", { requiresGrad: false }";
    return this.#declare(tensor, path, `new Parameter(${read}${options})`);
  }

  #declare(value: Module | Tensor, path: string, expression: string): string {
    const variable = this.#names.create(path === "" ? "model" : path);
    this.#variables.set(value, variable);
    this.#statements.push(`const ${variable} = ${expression};`);
    return variable;
  }

  /** Writes the class of a graph module, and gives its name. */
  #class(module: GraphModule, path: string): string {
    const { source, globals } = module.graph.generateCode({ form: "method" });
    const name = this.#names.create(module.className);
    this.#imports.add("Module");
    const functions: string[] = [];
    for (const [variable, global] of globals) {
      if (global.kind === "export") {
        this.#imports.add(variable);
      } else if (global.kind === "function") {
        this.#imports.add("functionNamed");
        functions.push(`const ${variable} = functionNamed(${stringLiteral(global.target)});`);
      } else {
        this.#imports.add("remakePacking");
        functions.push(
          `const ${variable} = remakePacking(${parsed(packingJson(module, path))}).info.${specName(variable)};`,
        );
      }
    }
    const getter = `  get className() {\n    return ${stringLiteral(module.className)};\n  }`;
    const body = `class ${name} extends Module {\n${getter}\n\n${indented(source)}\n}`;
    this.#classes.push(
      functions.length === 0
        ? body
        : `const ${name} = (() => {\n${indented(`${functions.join("\n")}\nreturn ${body};`)}\n})();`,
    );
    return name;
  }
}

function fieldsPart(module: Module, path: string): string[] {
  const fields = fieldsOf(module, (name) =>
    refused(path, `has the property \`${name}\``, "only plain values, dtypes and functions with a name can be saved"),
  );
  const json = JSON.stringify(fields);
  return json === "{}" ? [] : [`  fields: ${parsed(json)},`];
}

/** An expression for JSON. In an object literal __proto__ is no property, so an object that might have it is parsed. */
function parsed(json: string): string {
  return /__proto__|<|[^ -~]/.test(json) ? `JSON.parse(${stringLiteral(json)})` : json;
}

function packingJson({ graph }: GraphModule, path: string): string {
  const packing = packingOf(graph);
  if (packing !== undefined && packing !== "none") return JSON.stringify(packing);
  throw refused(path, "has a code generator of its own", "graph.setCodegen(new CodeGen()) makes its inputs flat");
}

/** The part of a packing that a free name of its code stands for. */
function specName(variable: string): "inSpec" | "outSpec" {
  return variable === "$outSpec" ? "outSpec" : "inSpec";
}

/** The expression for the class of a module without a graph. */
function className({ constructor }: Module, path: string): string {
  const name = builtinNameOf(constructor);
  if (name !== undefined) return stringLiteral(name);
  throw refused(path, `is of the class ${constructor.name}, which is none of torch.nn's`, "trace into it");
}

function indented(source: string): string {
  return source
    .trimEnd()
    .split("\n")
    .map((line) => (line === "" ? "" : `  ${line}`))
    .join("\n");
}
