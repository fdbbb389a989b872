/** The suite runs a second time where the host forbids what this entry is for. */
export const isForbidden = (() => {
  try {
    // oxlint-disable-next-line no-new-func -- whether it is allowed is the question
    return new Function("return 1")() !== 1;
  } catch {
    return true;
  }
})();
