/** What tests of refusals share. */
import { FxError } from "../src/base/errors.ts";

/** The refusal that a call ends in; anything else that is thrown goes on, and a call that returns is an error. */
export function thrown(body: () => unknown): FxError {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
