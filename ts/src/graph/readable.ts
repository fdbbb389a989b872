/**
 * Modules as code for readers: `GraphModule.print_readable`.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { ANNOTATIONS, type AnnotationOptions } from "./codegen/annotations.ts";
import { CodeNames } from "./codegen/globals.ts";
import { commentText, isIdentifier, stringLiteral } from "./codegen/text.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/**
 * The code of a module and of the graphs inside it, with what is known of each value: `f32[2, s77]`, and the line of the
 * traced code where it comes from.
 *
 * @example
 * ```ts
 * console.log(formatReadable(gm, { includeStride: true }));
 * ```
 */
export function formatReadable(module: GraphModule, options: AnnotationOptions = {}): string {
  const isModule = isObject(module) && "graphHooks" in module;
  checkGiven("formatReadable", isModule, "a GraphModule", "symbolicTrace(module) makes one");
  checkOptions("formatReadable", options, ANNOTATIONS);
  const { className } = module;
  const legal = new CodeNames([]).create(className);
  const name = legal === className ? legal : `${legal} /* ${commentText(className)} */`;
  return `${classLines(module, `class ${name} extends nn.Module {`, options).join("\n")}\n`;
}

function classLines(module: GraphModule, head: string, options: AnnotationOptions): string[] {
  const { source } = module.graph.generateCode({ form: "method", verbose: options });
  const inner = [...module.namedChildren()].flatMap(([name, child]) => {
    if (!("graphHooks" in child)) return [];
    // No field of a class may be called constructor, unless the name is computed.
    const field = isIdentifier(name) && name !== "constructor" ? name : `[${stringLiteral(name)}]`;
    // As in PyTorch, only the outermost head is expanded.
    const lines = classLines(child as GraphModule, `${field} = class extends nn.Module {`, {
      ...options,
      expandedDef: false,
    });
    return ["", ...lines.slice(0, -1), "};"];
  });
  const body = [...source.trimEnd().split("\n"), ...inner];
  return [head, ...body.map((line) => (line === "" ? "" : `  ${line}`)), "}"];
}
