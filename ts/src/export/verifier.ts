/**
 * Verifiers of one's own: `torch._export.verifier.Verifier`, to be derived from.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { FxError, fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { ExportedProgram } from "./exportedProgram.ts";

/** The dialects that the engine knows. */
export const DIALECTS: readonly string[] = ["ATEN", "TRAINING"];

const registered = new Map<string, Verifier>();

/**
 * The rules of a dialect of one's own, on top of those of `ATEN` or `TRAINING`. Once it is registered, programs whose
 * `verifiers` name the dialect are held to it.
 *
 * @example
 * ```ts
 * class EdgeVerifier extends Verifier {
 *   readonly dialect = "EDGE";
 *
 *   override allowedOps(): Iterable<string> {
 *     return ["torch.ops.aten.add.Tensor", "torch.ops.aten.relu.default"];
 *   }
 * }
 *
 * registerVerifier(new EdgeVerifier());
 * const edge = program.update(program.graphModule, program.graphSignature, { verifiers: ["EDGE"] });
 * edge.validate();
 * ```
 */
export abstract class Verifier {
  /** The name of the dialect. */
  abstract readonly dialect: string;

  /** The dialect whose rules hold, too. */
  get base(): "ATEN" | "TRAINING" {
    return "ATEN";
  }

  /** The functions that graphs may call, by their qualified names; undefined where all may be called that the base allows. */
  allowedOps(): Iterable<string> | undefined {
    return undefined;
  }

  /** Refuses a function that graphs must not call, by throwing. */
  checkValidOp(op: string): void {
    const allowed = this.allowedOps();
    if (allowed !== undefined && ![...allowed].includes(op)) {
      throw violation(`Operator '${op}' is not in the dialect ${this.dialect}`, undefined);
    }
  }

  /** Refuses a graph as a whole, by throwing. */
  checkAdditional(_module: GraphModule): void {}

  /** Holds a program to these rules, and not to those of the base: `validate` does both. */
  check(program: ExportedProgram): void {
    for (const module of program.graphModule.namedModules().values()) {
      if (!(module instanceof GraphModule)) continue;
      for (const { op, target, name } of module.graph.nodes) {
        if (op !== "call_function") continue;
        try {
          this.checkValidOp(target);
        } catch (cause) {
          const what = cause instanceof FxError ? cause.reason : cause instanceof Error ? cause.message : String(cause);
          throw violation(what, name, cause);
        }
      }
      this.checkAdditional(module);
    }
  }
}

/**
 * Makes the dialect of a verifier known. Another one of the same name takes its place; those of the engine cannot be replaced.
 *
 * @example
 * ```ts
 * registerVerifier(new EdgeVerifier());
 * ```
 */
export function registerVerifier(verifier: Verifier): void {
  checkGiven("registerVerifier", verifier instanceof Verifier, "a Verifier", "class Mine extends Verifier { … }");
  if (DIALECTS.includes(verifier.dialect) || verifier.dialect === "") {
    throw fxError("InvalidOption", `the dialect '${verifier.dialect}' has a verifier that cannot be replaced`);
  }
  registered.set(verifier.dialect, verifier);
}

/** The verifiers of one's own that a program names, and its dialects as the engine knows them. */
export function verifiersOf(dialects: readonly string[]): { readonly own: Verifier[]; readonly known: string[] } {
  const own = dialects.flatMap((it) => registered.get(it) ?? []);
  return { own, known: [...new Set(dialects.map((it) => registered.get(it)?.base ?? it))] };
}

function violation(what: string, node: string | undefined, cause?: unknown): FxError {
  return fxError("SpecViolation", what, { ...(node !== undefined && { node }), ...(cause !== undefined && { cause }) });
}
