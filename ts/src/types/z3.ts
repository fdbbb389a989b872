/**
 * Z3, from the package `z3-solver`: an import of its own, `tracefx/z3`, since most programs need no solver but the
 * engine's, and bundlers are not to look for a package that is not there.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { SmtSolver } from "./constraints.ts";
import { checkOptions } from "../base/given.ts";

/** How {@link Z3} is asked. */
export interface Z3Options {
  /** How many milliseconds an answer may take. */
  readonly timeout?: number;
}

/** How long Z3 may take to notice that its time is over, before its threads are ended. */
const GRACE = 2_000;

/**
 * Z3 in WebAssembly, with threads of its own: {@link Z3.close} ends them, and a process does not end before.
 *
 * In a browser, `z3-solver` needs a page that is isolated from other origins, and its script to be loaded before.
 *
 * @example
 * ```ts
 * import { transformAllConstraintsWith } from "tracefx";
 * import { Z3 } from "tracefx/z3";
 * await using z3 = await Z3.load({ timeout: 5_000 });
 * const { answer } = await transformAllConstraintsWith(gm, z3);
 * ```
 */
export class Z3 implements SmtSolver, AsyncDisposable {
  readonly #api: Z3Api;
  readonly #kill: Z3Package["killThreads"];
  readonly #timeout: number;
  /** The last question: Z3 answers one at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** Refuses the question that is being answered. */
  #interrupt: ((reason: Error) => void) | undefined;

  private constructor(api: Z3Api, kill: Z3Package["killThreads"], timeout: number) {
    this.#api = api;
    this.#kill = kill;
    this.#timeout = timeout;
  }

  /**
   * Loads Z3.
   *
   * @throws `UsageError` `NotLoaded` where the package `z3-solver` is not installed.
   */
  static async load(options: Z3Options = {}): Promise<Z3> {
    checkOptions("Z3.load", options, ["timeout"]);
    const { timeout = 10_000 } = options;
    if (!(Number.isSafeInteger(timeout) && timeout > 0)) {
      throw fxError("InvalidOption", `the timeout is a whole number of milliseconds, and not ${timeout}`);
    }
    const { init, killThreads } = await loadPackage();
    return new Z3(await init(), killThreads, timeout);
  }

  /**
   * What Z3 prints when it is given this text, in SMT-LIB 2, that ends with its questions `(check-sat)` and `(get-model)`.
   * Each question has a context of its own; those that are asked at the same time are answered one after the other.
   *
   * @throws `ArchiveError` `LimitExceeded` where Z3 does not answer in time.
   * @throws `RewriteError` `PassFailed` where Z3 refuses the text.
   */
  ask(smtLib: string): Promise<string> {
    const answer = this.#last.then(() => this.#ask(smtLib));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #ask(smtLib: string): Promise<string> {
    if (this.#isClosed) throw closed();
    // Not by destructuring: TypeScript 7.0.2 prints the name of this class there as an alias of its own.
    const z3 = this.#api.Z3;
    const config = z3.mk_config();
    const context = z3.mk_context(config);
    z3.del_config(config);
    try {
      return await this.#answer(context, smtLib);
    } finally {
      // As in `#run`.
      if (!this.#isClosed) z3.del_context(context);
    }
  }

  async #answer(context: unknown, smtLib: string): Promise<string> {
    // All at once: between two texts, Z3 may forget the model.
    const printed = await this.#run(context, `${OPTIONS}(set-option :timeout ${this.#timeout})\n${smtLib}`);
    const verdict = /^(sat|unsat|unknown)\s/u.exec(printed)?.[1];
    if (verdict === undefined || (verdict === "sat" && printed.includes("(error"))) {
      throw fxError("PassFailed", "Z3 refuses the problem", { notes: printed.trim().split("\n") });
    }
    // What follows is the model, or an error that there is none.
    if (verdict === "sat") return printed;
    if (verdict === "unsat") return "unsat\n";
    const reason = await this.#run(context, "(get-info :reason-unknown)");
    if (/timeout|canceled/u.test(reason)) throw this.#late();
    return `unknown\n${reason}`;
  }

  /** Runs commands. Z3 looks at its clock only now and then, so its threads are ended where it is long over. */
  async #run(context: unknown, commands: string): Promise<string> {
    const { em } = this.#api;
    // The package lends the thread a text on the stack, which is gone while it still reads; this one stays until the answer.
    const bytes = new TextEncoder().encode(`${commands}\0`);
    const text = em._malloc(bytes.length);
    new Uint8Array(em.HEAPU32.buffer).set(bytes, text);
    const evaluate = () => em.ccall("async_Z3_eval_smtlib2_string", "void", ["number", "number"], [context, text]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const interrupted = new Promise<never>((_, reject) => {
      this.#interrupt = reject;
      timer = setTimeout(() => void this.#end(this.#late()), this.#timeout + GRACE);
    });
    try {
      return await Promise.race([em.async_call(evaluate), interrupted]);
    } finally {
      clearTimeout(timer);
      this.#interrupt = undefined;
      // A thread that was ended may have left a lock behind, on which this would wait forever.
      if (!this.#isClosed) em._free(text);
    }
  }

  #late(): Error {
    return fxError("LimitExceeded", `Z3 did not answer within ${this.#timeout} milliseconds`, {
      help: "give it more time, Z3.load({ timeout }), or say more of the sizes",
    });
  }

  /** Ends the threads of Z3. What it was asked is refused, and it cannot be asked any more. */
  async close(): Promise<void> {
    await this.#end(closed());
  }

  async #end(reason: Error): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#interrupt?.(reason);
    await this.#kill(this.#api.em);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function closed(): Error {
  return fxError("InvalidOption", "Z3 was closed", { help: "load it again: await Z3.load()" });
}

/** Models without names for parts that occur twice. */
const OPTIONS = "(set-option :pp.min_alias_size 1000000)\n(set-option :pp.max_depth 1000000)\n";

/** The part of `z3-solver` that is used. */
interface Z3Package {
  init(): Promise<Z3Api>;
  killThreads(em: unknown): Promise<void>;
}

interface Z3Api {
  readonly em: {
    readonly HEAPU32: Uint32Array;
    _malloc(length: number): number;
    _free(address: number): void;
    async_call(start: () => void): Promise<string>;
    ccall(name: string, result: "void", types: readonly "number"[], args: readonly unknown[]): void;
  };
  readonly Z3: {
    mk_config(): unknown;
    del_config(config: unknown): void;
    mk_context(config: unknown): unknown;
    del_context(context: unknown): void;
  };
}

async function loadPackage(): Promise<Z3Package> {
  try {
    return (await import("z3-solver")) as unknown as Z3Package;
  } catch (cause) {
    throw fxError("NotLoaded", "the package z3-solver is not there", {
      cause,
      help: "npm install z3-solver; or take the text, answer.smtLib, to another solver",
    });
  }
}
