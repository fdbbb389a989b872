/**
 * Passes one after the other: `torch.fx.passes.infra.pass_manager`.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { checkGraphModule } from "./checks.ts";
import { checkFunction, checkList, checkOptions } from "../base/given.ts";
import { isPassResult, type Pass, passName, type PassResult, runPassOn } from "./passBase.ts";

/** A rule about the order of two passes: whether the first may run before the second. */
export type PassConstraint = (a: Pass, b: Pass) => boolean;

/** What must hold of a module between passes; it throws where it does not. */
export type ModuleCheck = (graphModule: GraphModule) => void;

/**
 * The rule that one pass runs before another: `this_before_that_pass_constraint`.
 *
 * @example
 * ```ts
 * manager.addConstraint(thisBeforeThatPassConstraint(cse, deadCode));
 * ```
 */
export function thisBeforeThatPassConstraint<P = Pass>(first: P, then: P): (a: unknown, b: unknown) => boolean {
  return (a, b) => a !== then || b !== first;
}

/** How a {@link PassManager} runs its passes. */
export interface PassManagerOptions {
  /** The passes. */
  readonly passes?: readonly Pass[];
  /** The rules about their order. */
  readonly constraints?: readonly PassConstraint[];
  /** How often the passes run at most, where they go on changing something; once where nothing is said. */
  readonly steps?: number;
  /** Whether the check runs after each pass as well, and not before the first alone. */
  readonly runChecksAfterEachPass?: boolean;
}

/**
 * Runs passes in an order that constraints decide, until nothing changes or a number of times.
 *
 * @example
 * ```ts
 * const manager = new PassManager({ passes: [new CSEPass(), passResultWrapper(cleanUp)], steps: 3 });
 * const { graphModule, modified } = manager.run(gm);
 * ```
 */
export class PassManager {
  /** How often the passes run at most. */
  readonly steps: number;
  /** Whether the check runs after each pass as well. */
  readonly runChecksAfterEachPass: boolean;
  #passes: readonly Pass[];
  #constraints: readonly PassConstraint[];
  #check: ModuleCheck = () => {};
  #isOrdered = false;

  constructor(options: PassManagerOptions = {}) {
    checkOptions("PassManager", options, ["passes", "constraints", "steps", "runChecksAfterEachPass"]);
    const { passes = [], constraints = [], steps = 1, runChecksAfterEachPass = false } = options;
    if (!Number.isSafeInteger(steps) || steps < 1) {
      throw fxError("InvalidOption", `passes run once or more often, and not ${steps} times`);
    }
    checkList("PassManager", "passes", passes);
    checkList("PassManager", "constraints", constraints);
    passes.forEach(checkPass);
    for (const it of constraints) checkFunction("PassManager", "a constraint", it);
    this.#passes = [...passes];
    this.#constraints = [...constraints];
    this.steps = steps;
    this.runChecksAfterEachPass = runChecksAfterEachPass;
  }

  /** The passes, in the order in which they run. */
  get passes(): readonly Pass[] {
    return this.#passes;
  }

  /** Adds a pass, to run after the others unless a constraint says otherwise. */
  addPass(pass: Pass): void {
    checkPass(pass);
    this.#passes = [...this.#passes, pass];
    this.#isOrdered = false;
  }

  /** Adds a constraint. */
  addConstraint(constraint: PassConstraint): void {
    checkFunction("PassManager", "a constraint", constraint);
    this.#constraints = [...this.#constraints, constraint];
    this.#isOrdered = false;
  }

  /** Sets the check, a function of one module, that runs before the passes and perhaps after each. */
  addChecks(check: ModuleCheck): void {
    checkFunction("PassManager", "its check", check);
    if (check.length !== 1) {
      throw fxError("InvalidOption", "PassManager check function should only take in one variable, a module");
    }
    this.#check = check;
  }

  /** Throws where the passes stand in an order that a constraint forbids. */
  validateConstraints(): void {
    for (const [i, a] of this.#passes.entries()) {
      for (const [j, b] of this.#passes.entries()) {
        if (j > i && !this.#mayPrecede(a, b)) throw violated([a, i], [b, j]);
      }
    }
    this.#isOrdered = true;
  }

  /** Puts the passes into an order that holds the constraints, near to the one that they have. */
  solveConstraints(): void {
    this.#passes = this.#sorted();
    this.#isOrdered = true;
  }

  /**
   * Runs the passes. What the last round left out is in the result. An error of a pass is the cause of the error that names
   * it and the passes before it.
   */
  run(graphModule: GraphModule): PassResult {
    checkGraphModule("PassManager", graphModule);
    if (!this.#isOrdered) this.solveConstraints();
    this.#check(graphModule);
    let result: PassResult = { graphModule, modified: false };
    for (let step = 0; step < this.steps; step++) {
      const round = this.#once(result.graphModule);
      result = { ...round, modified: result.modified || round.modified };
      if (!round.modified) break;
    }
    return result;
  }

  #once(graphModule: GraphModule): PassResult {
    let result: PassResult = { graphModule, modified: false };
    for (const [at, pass] of this.#passes.entries()) {
      try {
        const { graphModule: changed, modified, leftOut } = checkedResult(pass, runPassOn(pass, result.graphModule));
        const all = [...(result.leftOut ?? []), ...(leftOut ?? [])];
        const left = all.length > 0 ? { leftOut: all } : {};
        result = { graphModule: changed, modified: result.modified || modified, ...left };
        if (this.runChecksAfterEachPass) this.#check(changed);
      } catch (cause) {
        const before = this.#passes.slice(0, at).map(passName);
        throw fxError(
          "PassFailed",
          `An error occurred when running the '${passName(pass)}' pass after the following passes: [${before.join(", ")}]`,
          { cause, notes: cause instanceof Error ? [cause.message] : [] },
        );
      }
    }
    return result;
  }

  #mayPrecede(a: Pass, b: Pass): boolean {
    return this.#constraints.every((it) => it(a, b));
  }

  /** The passes such that each comes after those that must run before it; the first that are free come first. */
  #sorted(): Pass[] {
    // One pass may stand in the list several times, so places are sorted.
    const steps = this.#passes.map((pass) => ({ pass, after: [] as number[], waiting: 0 }));
    for (const [i, a] of steps.entries()) {
      for (const b of steps) {
        if (a.pass === b.pass || this.#mayPrecede(a.pass, b.pass)) continue;
        b.after.push(i);
        a.waiting++;
      }
    }
    const sorted = steps.filter((it) => it.waiting === 0);
    // The list grows while it is walked.
    for (const { after } of sorted) {
      for (const at of after) {
        const next = steps[at] as (typeof steps)[number];
        if (--next.waiting === 0) sorted.push(next);
      }
    }
    if (sorted.length < steps.length) throw circular(steps.filter((it) => it.waiting !== 0).map(({ pass }) => pass));
    return sorted.map(({ pass }) => pass);
  }
}

/** Refuses what is no pass before anything runs. */
function checkPass(pass: Pass): void {
  if (typeof pass === "function" || typeof pass?.run === "function") return;
  throw fxError("InvalidOption", `${String(pass)} is no pass`, {
    help: "a pass is a function of a module, or an object of a class that extends PassBase",
  });
}

function checkedResult(pass: Pass, result: PassResult | undefined): PassResult {
  if (isPassResult(result)) return result;
  throw fxError("InvalidOption", `The result of the pass ${passName(pass)} should be type PassResult.`, {
    help: "wrap it with passResultWrapper()",
  });
}

function violated([a, i]: readonly [Pass, number], [b, j]: readonly [Pass, number]): FxError {
  const what = `${passName(a)} stands at index ${i} and ${passName(b)} at index ${j}`;
  return fxError("PassFailed", `pass schedule constraint violated: ${what}`, {
    help: "solveConstraints() finds an order that holds them",
  });
}

function circular(passes: readonly Pass[]): FxError {
  const names = passes.map(passName).join(", ");
  return fxError("PassFailed", `Circular dependency detected within the following passes: [${names}]`, {
    help: "take one of the constraints between them away",
  });
}
