/**
 * What to write, and what to accept.
 *
 * @module
 */

/** What to write. */
export interface EncodeOptions {
  /** Whether the file has a checksum; on unless turned off. */
  readonly checksum?: boolean;
  /**
   * Whether the bytes of the tensors are in the file; on unless turned off. Without them, who reads it brings the
   * storages, in the order of the file.
   */
  readonly weights?: boolean;
  /**
   * Whether names that no node has any more stay taken, so that the reader names new nodes exactly as the writer would;
   * off unless turned on. Without them, the bytes do not depend on the history of edits.
   */
  readonly names?: boolean;
  /** Whether what was noted about nodes, or only about inputs, is in the file; about all unless turned off. */
  readonly notes?: boolean | "inputs";
  /** What to do with modules that have no graph: refuse to write them, which is what happens otherwise, or leave them out. */
  readonly leafModules?: "refuse" | "omit";
}

/** For a call of the engine, where the tensors stay where they are and the names must go on as they were. */
export const CALL_OPTIONS: EncodeOptions = { checksum: false, weights: false, names: true, leafModules: "omit" };

/** What a reader accepts. All other sizes are bounded by the bytes that are there. */
export interface Limits {
  /** The number of bytes of the file. */
  readonly bytes?: number;
  /** The number of nodes of one graph. */
  readonly nodes?: number;
  /** The number of modules. */
  readonly modules?: number;
  /** The number of bytes of row-major copies of tensors that are views; a view may have more elements than its storage. */
  readonly copies?: number;
}

/** The limits that hold where none are given. */
export const DEFAULT_LIMITS: Required<Limits> = {
  bytes: Number.MAX_SAFE_INTEGER,
  nodes: 2 ** 24,
  modules: 2 ** 16,
  copies: 2 ** 30,
};
