/**
 * The pass manager that torch.fx had first, over values of any kind: `torch.fx.passes.pass_manager`. Passes are functions that
 * give what they are given, changed or not; new code takes `PassManager` of the package, which orders passes itself.
 *
 * @example
 * ```ts
 * const { PassManager, inplaceWrapper, loopPass } = passManager;
 * const manager = new PassManager([loopPass(foldConstants, { nIter: 3 }), inplaceWrapper(cleanUp)]);
 * const gm = manager.run(symbolicTrace(model));
 * ```
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkFunction, checkList, checkOptions } from "../base/given.ts";

export { thisBeforeThatPassConstraint } from "./passManager.ts";

/** A pass: it gives the value, or another one in its place. */
export type LegacyPass<T> = (source: T) => T;

/** A rule about the order of two passes: whether the first may stand before the second. */
export type LegacyConstraint<T> = (a: LegacyPass<T>, b: LegacyPass<T>) => boolean;

/** What a pass that another one was made of is called by: Python's `__wrapped__`. */
const wrapped = new WeakMap<object, object>();

/** A function in the place of another, with its name. */
function wrapping<F extends (...args: never[]) => unknown>(made: F, base: { readonly name: string }): F {
  wrapped.set(made, base);
  return Object.defineProperty(made, "name", { value: base.name });
}

/** The pass that others were made of, however often. */
function unwrap(pass: object): object {
  let it = pass;
  for (let base = wrapped.get(it); base !== undefined; base = wrapped.get(it)) it = base;
  return it;
}

/**
 * A pass of a function that changes what it is given and gives something else: `inplace_wrapper`.
 *
 * @example
 * ```ts
 * const pass = passManager.inplaceWrapper((gm: GraphModule) => gm.graph.eliminateDeadCode());
 * ```
 */
export function inplaceWrapper<T, A extends readonly unknown[]>(
  fn: (source: T, ...rest: A) => unknown,
): (source: T, ...rest: A) => T {
  checkFunction("inplaceWrapper", "fn", fn);
  const pass = (source: T, ...rest: A): T => {
    fn(source, ...rest);
    return source;
  };
  return wrapping(pass, fn);
}

/**
 * The function, which tells what it gave: `log_hook`. Text goes to the console unless another place is given.
 *
 * @example
 * ```ts
 * const pass = passManager.inplaceWrapper(passManager.logHook(cleanUp));
 * ```
 */
export function logHook<A extends readonly unknown[], R>(
  fn: (...args: A) => R,
  log: (text: string) => void = (text) => {
    // oxlint-disable-next-line no-console -- telling is what it is for
    console.info(text);
  },
): (...args: A) => R {
  checkFunction("logHook", "fn", fn);
  checkFunction("logHook", "log", log);
  const hooked = (...args: A): R => {
    const res = fn(...args);
    log(`Ran pass ${fn.name}\t Return value: ${String(res)}`);
    return res;
  };
  return wrapping(hooked, fn);
}

/** How often {@link loopPass} runs a pass: one of the two. */
export interface LoopOptions<T> {
  /** This many times. */
  readonly nIter?: number;
  /** As long as this holds of what the pass gave. */
  readonly predicate?: (output: T) => boolean;
}

/**
 * A pass that runs another one several times: `loop_pass`.
 *
 * @example
 * ```ts
 * const pass = passManager.loopPass(fold, { predicate: (gm) => gm.graph.nodes.length > 100 });
 * ```
 */
export function loopPass<T>(basePass: LegacyPass<T>, options: LoopOptions<T>): LegacyPass<T> {
  checkFunction("loopPass", "basePass", basePass);
  checkOptions("loopPass", options, ["nIter", "predicate"]);
  const { nIter, predicate } = options;
  if ((nIter === undefined) === (predicate === undefined)) {
    throw fxError("InvalidOption", "Exactly one of `n_iter`or `predicate` must be specified.");
  }
  const pass = (source: T): T => {
    let output = source;
    if (nIter !== undefined && nIter > 0) for (let at = 0; at < nIter; at++) output = basePass(output);
    else if (predicate !== undefined) while (predicate(output)) output = basePass(output);
    else {
      const given = `(given ${nIter}) xor predicate (given None)`;
      throw fxError("InvalidOption", `loop_pass must be given positive int n_iter ${given}`);
    }
    return output;
  };
  return wrapping(pass, basePass);
}

/**
 * The rule that one pass stands before another, also where they are within a {@link loopPass} or {@link inplaceWrapper}:
 * `these_before_those_pass_constraint`.
 *
 * @example
 * ```ts
 * manager.addConstraint(passManager.theseBeforeThosePassConstraint(fold, cleanUp));
 * ```
 */
export function theseBeforeThosePassConstraint<T>(these: LegacyPass<T>, those: LegacyPass<T>): LegacyConstraint<T> {
  return (a, b) => unwrap(a) !== those || unwrap(b) !== these;
}

/**
 * Runs passes one after the other, after it has found the constraints to hold of their order. It changes no order: what is
 * not as constraints say is refused.
 *
 * @example
 * ```ts
 * new passManager.PassManager([fold, cleanUp]).run(gm);
 * ```
 */
export class PassManager<T = unknown> {
  /** The passes, in the order in which they run. */
  passes: LegacyPass<T>[];
  /** The rules about their order. */
  readonly constraints: LegacyConstraint<T>[];
  #isValidated = false;

  constructor(passes: readonly LegacyPass<T>[] = [], constraints: readonly LegacyConstraint<T>[] = []) {
    checkList("PassManager", "passes", passes);
    checkList("PassManager", "constraints", constraints);
    for (const it of [...passes, ...constraints]) checkFunction("PassManager", "a pass or a constraint", it);
    this.passes = [...passes];
    this.constraints = [...constraints];
  }

  /** A manager of these passes. */
  static buildFromPasslist<T>(passes: readonly LegacyPass<T>[]): PassManager<T> {
    return new PassManager(passes);
  }

  /** Adds a pass behind the others. */
  addPass(pass: LegacyPass<T>): void {
    checkFunction("addPass", "the pass", pass);
    this.passes.push(pass);
    this.#isValidated = false;
  }

  /** Adds a rule about the order of the passes. */
  addConstraint(constraint: LegacyConstraint<T>): void {
    checkFunction("addConstraint", "the constraint", constraint);
    this.constraints.push(constraint);
    this.#isValidated = false;
  }

  /** Removes the passes of these names. */
  removePass(names: readonly string[]): void {
    checkList("removePass", "names", names);
    this.passes = this.passes.filter((it) => !names.includes(it.name));
    this.#isValidated = false;
  }

  /** Puts a pass in the place of those that are called as another one. */
  replacePass(target: LegacyPass<T>, replacement: LegacyPass<T>): void {
    checkFunction("replacePass", "target", target);
    checkFunction("replacePass", "replacement", replacement);
    this.passes = this.passes.map((it) => (it.name === target.name ? replacement : it));
    this.#isValidated = false;
  }

  /** Refuses an order of the passes of which a constraint does not hold. */
  validate(): void {
    if (this.#isValidated) return;
    for (const constraint of this.constraints) checkOrder(constraint, this.passes);
    this.#isValidated = true;
  }

  /** Runs the passes: what calling the manager does in PyTorch. */
  run(source: T): T {
    this.validate();
    let res = source;
    for (const pass of this.passes) res = pass(res);
    return res;
  }
}

function checkOrder<T>(constraint: LegacyConstraint<T>, passes: readonly LegacyPass<T>[]): void {
  for (const [i, a] of passes.entries()) {
    for (const [j, b] of passes.slice(i + 1).entries()) {
      // The second index counts from the pass behind the first, as PyTorch's message does.
      const where = `found ${a.name} at index ${i} and ${b.name} at index${j} in pass list.`;
      const reason = `pass schedule constraint violated. Expected ${a.name} before ${b.name} but ${where}`;
      if (!constraint(a, b)) throw fxError("PassFailed", reason);
    }
  }
}
