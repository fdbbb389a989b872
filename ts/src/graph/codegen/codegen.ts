/**
 * How the function around generated code looks, and how what it is called with becomes the inputs of the graph:
 * `torch.fx.graph.CodeGen`.
 *
 * @module
 */
import type { Arg } from "../args.ts";
import type { Node } from "../node.ts";

/** One line of the body of generated code, without its indentation. */
export interface CodeLine {
  readonly text: string;
  /** The node that the line computes. */
  readonly node?: Node | undefined;
}

/** Changes the body of generated code; see {@link Graph.onGenerateCode}. */
export type BodyTransformer = (body: readonly CodeLine[]) => readonly CodeLine[];

/** An input of generated code. */
export interface Parameter {
  /** The variable that holds it. */
  readonly name: string;
  /** The declaration, with type and default: `x /* torch.Tensor *\/ = null`. */
  readonly declaration: string;
}

/** What is known of a function when its head is written. */
export interface FunctionHead {
  /** `function ` or nothing, for a method. */
  readonly keyword: "function " | "";
  readonly parameters: readonly Parameter[];
  /** The type of what is returned, as a comment with a space before it; or nothing. */
  readonly returns: string;
  /** Whether each parameter gets a line of its own. */
  readonly isExpanded: boolean;
  /** A variable that the body does not have, with a name close to this one. */
  readonly newName: (name: string) => string;
}

/**
 * How a function is generated around a graph. A subclass may give it another signature: then `processInputs` and
 * `processOutputs` say the same to those who run the graph without its code.
 *
 * @example
 * ```ts
 * class Doubled extends CodeGen {
 *   override generateOutput(output: Arg, write: (arg: Arg) => string): string {
 *     return `return [${write(output)}, ${write(output)}];`;
 *   }
 *   override processOutputs(output: unknown): unknown {
 *     return [output, output];
 *   }
 * }
 * graph.setCodegen(new Doubled());
 * ```
 */
export class CodeGen {
  /** The name of the function. */
  get functionName(): string {
    return "forward";
  }

  /** The lines that open the function: its head, which ends in a brace, and what comes before the body. */
  genFnDef({ keyword, parameters, returns, isExpanded }: FunctionHead): string[] {
    const declarations = parameters.map((it) => it.declaration);
    const head = `${keyword}${this.functionName}`;
    if (isExpanded && declarations.length > 0) {
      return [`${head}(`, ...declarations.map((it) => `  ${it},`), `)${returns} {`];
    }
    return [`${head}(${declarations.join(", ")})${returns} {`];
  }

  /** The statement that returns the output; `write` writes a value of the graph. */
  generateOutput(output: Arg, write: (arg: Arg) => string): string {
    return `return ${write(output)};`;
  }

  /** Free names that the lines of this class refer to, and their values. */
  additionalGlobals(): Iterable<readonly [name: string, value: unknown]> {
    return [];
  }

  /** The inputs of the graph, of what the function is called with. */
  processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return inputs;
  }

  /** What the function gives, of the output of the graph. */
  processOutputs(output: unknown): unknown {
    return output;
  }
}

/**
 * A function that takes all its inputs in one array and empties it, so that the caller does not keep them alive.
 *
 * @example
 * ```ts
 * graph.setCodegen(new BoxedCodeGen());
 * gm.forward([x, y]);
 * ```
 */
export class BoxedCodeGen extends CodeGen {
  override genFnDef(head: FunctionHead): string[] {
    const name = head.newName("inputs");
    const lines = super.genFnDef({ ...head, parameters: [{ name, declaration: name }], isExpanded: false });
    const declarations = head.parameters.map((it) => it.declaration);
    if (declarations.length > 0) lines.push(`  let [${declarations.join(", ")}] = ${name};`);
    return [...lines, `  ${name}.length = 0;`];
  }

  override processInputs(inputs: unknown): readonly unknown[] {
    return Array.isArray(inputs) ? (inputs.splice(0) as unknown[]) : [inputs];
  }
}
