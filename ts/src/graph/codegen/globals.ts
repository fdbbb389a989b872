/**
 * What generated code refers to besides its own variables.
 *
 * @module
 */
import { fxError } from "../../base/errors.ts";
import { isMember } from "../../base/members.ts";
import { camelCase } from "../../base/naming.ts";
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

/** Where this package has the functions whose names begin so; the first that fits is taken. */
const NAMESPACES: readonly (readonly [prefix: string, place: string])[] = [
  ["torch.nn.functional.", "F"],
  ["torch._C._nn.", "torch._C._nn"],
  ["torch._C._linalg.linalg_", "torch.linalg"],
  ["torch._C._fft.fft_", "torch.fft"],
  ["torch._C._special.special_", "torch.special"],
  ["torch.functional.", "torch"],
  ["torch.random.", "torch"],
  ["torch.", "torch"],
  ["operator.", "operator"],
  ["builtins.", "builtins"],
  ["math.", "math"],
];

/** What `torch.nn.functional` has for itself, and this package only by name. */
const BY_NAME = /^torch\.nn\.functional\._/;

/** An overload of an operator. What has no overload is an object that has overloads, besides a function. */
const OPERATOR = /^torch\.ops\.aten\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)$/;

/** What makes the values that JavaScript has no literals for. */
const MAKERS = ["Complex", "Ellipsis", "Float", "complex", "device", "dtype", "float", "layout", "memoryFormat", "op"];

/** Names that code may take from this package, whether it does or not. */
const EXPORTS: readonly string[] = ["F", "builtins", "math", "operator", "torch", "slice", "tuple", ...MAKERS];

/** Words that are no names of variables in a strict function, and globals that nobody should hide. */
const RESERVED: readonly string[] = [
  "arguments await break case catch class const continue debugger default delete do else enum eval export extends false",
  "finally for function if implements import in instanceof interface let new null package private protected public",
  "return static super switch this throw true try typeof undefined var void while with yield",
  "Infinity NaN globalThis async of get set constructor prototype __proto__",
].flatMap((line) => line.split(" "));

/**
 * The way to a function in generated code: an export of this package and the members from there, such as `torch`, `linalg`
 * and `vectorNorm`. `undefined` for a function that is referred to by its name alone.
 */
export function functionPath(target: string): readonly string[] | undefined {
  const [, operator, overload] = OPERATOR.exec(target) ?? [];
  if (operator !== undefined && overload !== undefined) return safely(["torch", "ops", "aten", operator, overload]);
  if (BY_NAME.test(target)) return undefined;
  const [prefix, place] = NAMESPACES.find(([start]) => target.startsWith(start)) ?? [];
  const name = target.slice(prefix?.length);
  return place !== undefined && isIdentifier(name) ? safely([...place.split("."), camelCase(name)]) : undefined;
}

/** The path, unless it has a name that every object of JavaScript has. */
function safely(path: readonly string[]): readonly string[] | undefined {
  return path.every(isMember) ? path : undefined;
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
