/**
 * What was shown before, and what was undone.
 *
 * @module
 */

/** States to go back and forth between. */
export class History<T> {
  #before: T[] = [];
  #after: T[] = [];

  /** All states that may be shown again. */
  get states(): readonly T[] {
    return [...this.#before, ...this.#after];
  }

  /** Notes what was shown before a change. What was undone cannot be done again then. */
  note(state: T): void {
    this.#before.push(state);
    this.#after = [];
  }

  /** The state before the last change; undefined where there is none. */
  undo(now: T): T | undefined {
    const state = this.#before.pop();
    if (state !== undefined) this.#after.push(now);
    return state;
  }

  /** The state after the last change that was undone; undefined where there is none. */
  redo(now: T): T | undefined {
    const state = this.#after.pop();
    if (state !== undefined) this.#before.push(now);
    return state;
  }

  /** Forgets all. */
  clear(): void {
    [this.#before, this.#after] = [[], []];
  }
}
