/**
 * What generated code refers to besides its own variables.
 *
 * @module
 */
import { fxError } from "../../errors.ts";
import { Namespace } from "../namespace.ts";
import { isIdentifier } from "./text.ts";

/** What a free name of generated code stands for. */
export type CodeGlobal =
  /** An export of this package with the same name. */
  | { readonly kind: "export" }
  /** The function of the function table with this qualified name. */
  | { readonly kind: "function"; readonly target: string }
  /** A value that a {@link CodeGen} brought along. */
  | { readonly kind: "value"; readonly value: unknown };

/** Functions of these namespaces are called through an export of this package. */
const NAMESPACES: readonly (readonly [prefix: string, name: string])[] = [
  ["torch.nn.functional.", "F"],
  ["torch.", "torch"],
  ["operator.", "operator"],
  ["builtins.", "builtins"],
  ["math.", "math"],
];

/** What makes the values that JavaScript has no literals for. */
const MAKERS = ["Complex", "Ellipsis", "Float", "complex", "device", "dtype", "float", "layout", "memoryFormat", "op"];

/** Names that code may take from this package, whether it does or not. */
const EXPORTS: readonly string[] = [...NAMESPACES.map(([, name]) => name), ...MAKERS, "slice", "tuple"];

/** Words that are no names of variables in a strict function, and globals that nobody should hide. */
const RESERVED: readonly string[] = [
  "arguments await break case catch class const continue debugger default delete do else enum eval export extends false",
  "finally for function if implements import in instanceof interface let new null package private protected public",
  "return static super switch this throw true try typeof undefined var void while with yield",
  "Infinity NaN globalThis async of get set constructor prototype __proto__",
].flatMap((line) => line.split(" "));

/** The namespace that a function is called through, and its name there. */
export interface FunctionHome {
  readonly namespace: string;
  readonly name: string;
}

/** The home of a function that one of the namespaces of this package has; others are referred to by name. */
export function homeOf(target: string): FunctionHome | undefined {
  for (const [prefix, namespace] of NAMESPACES) {
    const name = target.slice(prefix.length);
    if (target.startsWith(prefix) && isIdentifier(name)) return { namespace, name };
  }
  return undefined;
}

/** Names of one generated function: its variables, and what it refers to. */
export class CodeNames {
  readonly #names = new Namespace();
  readonly #functions = new Map<string, string>();
  readonly #used = new Map<string, CodeGlobal>();

  constructor(additional: Iterable<readonly [name: string, value: unknown]>) {
    for (const name of [...RESERVED, ...EXPORTS]) this.#names.reserve(name);
    for (const [name, value] of additional) {
      if (!isIdentifier(name) || !this.#names.reserve(name)) {
        throw fxError("InvalidOption", `\`${name}\` cannot be the name of an additional global`, {
          help: "choose an identifier that is no word of JavaScript and no export of this package",
        });
      }
      this.#used.set(name, { kind: "value", value });
    }
  }

  /** Whether a variable may have this very name; if so, it is taken. */
  reserve(name: string): boolean {
    return /^[A-Za-z_]\w*$/.test(name) && this.#names.reserve(name);
  }

  /** A free name for a variable: this one, or one close to it. */
  create(name: string): string {
    return this.reserve(name) ? name : this.#names.createName(name);
  }

  /** Refers to an export of this package. */
  use(name: string): string {
    this.#used.set(name, { kind: "export" });
    return name;
  }

  /** The name under which a function of the table is referred to. */
  functionName(target: string): string {
    const known = this.#functions.get(target);
    if (known !== undefined) return known;
    const name = this.create(target.startsWith("torch.ops.") ? target.slice("torch.ops.".length) : target);
    this.#functions.set(target, name);
    this.#used.set(name, { kind: "function", target });
    return name;
  }

  /** What was referred to, by the name in the code. */
  globals(): ReadonlyMap<string, CodeGlobal> {
    return this.#used;
  }
}
