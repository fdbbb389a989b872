/**
 * Errors with a stable code.
 *
 * Everything that tracefx refuses is an {@link FxError} of a subclass that names the area, whether TypeScript or the
 * engine refused it. The codes are a table that Rust owns (`bindings/errors.ts`); branch on `code` or on the class,
 * never on the text.
 *
 * @example
 * ```ts
 * try {
 *   await load(bytes);
 * } catch (error) {
 *   if (error instanceof ArchiveError && error.code === "FX0102") askForAnotherFile();
 *   else throw error;
 * }
 * ```
 * @module
 */
import { beginAtUser } from "./frames.ts";
import { ERRORS, type ErrorClass, type ErrorCode, type ErrorName } from "../../../bindings/errors.ts";

export type { ErrorClass, ErrorCode, ErrorName } from "../../../bindings/errors.ts";

/** Where an error happened and what to do about it. */
export interface ErrorDetails {
  /** The name of the node where it happened. */
  readonly node?: string | undefined;
  /** The operator where it happened, such as `aten.mm.default`. */
  readonly op?: string | undefined;
  /** Lines of context. */
  readonly notes?: readonly string[];
  /** What to do about it. */
  readonly help?: string | undefined;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

/** A refusal: a stable code, what happened, where, and what to do. */
export class FxError extends Error {
  /** The stable code, such as `FX0301`. */
  readonly code: ErrorCode;
  /** The name of the code, such as `ShapeMismatch`. */
  readonly kind: ErrorName;
  /** What happened, without code, place, notes and help. */
  readonly reason: string;
  /** The name of the node where it happened. */
  readonly node: string | undefined;
  /** The operator where it happened. */
  readonly op: string | undefined;
  /** Lines of context. */
  readonly notes: readonly string[];
  /** What to do about it. */
  readonly help: string | undefined;

  constructor(kind: ErrorName, reason: string, details: ErrorDetails = {}) {
    super(text(kind, reason, details), "cause" in details ? { cause: details.cause } : undefined);
    this.name = new.target.name;
    this.code = ERRORS[kind].code;
    this.kind = kind;
    this.reason = reason;
    this.node = details.node;
    this.op = details.op;
    this.notes = details.notes ?? [];
    this.help = details.help;
  }
}

/** An archive, or a part of it, is malformed, of the wrong kind, or over a limit. */
export class ArchiveError extends FxError {}
/** A graph, or an edit of it, breaks a rule of graphs. */
export class GraphError extends FxError {}
/** An operator refuses its arguments. */
export class OperatorError extends FxError {}
/** An operator, dtype or option is not implemented. */
export class NotImplementedError extends FxError {}
/** Bytes are not in the tracefx format. */
export class WireError extends FxError {}
/** The inputs of a program are not the ones that it takes. */
export class InputError extends FxError {}
/** The API was used in a way that it does not offer. */
export class UsageError extends FxError {}
/** A function does something that a trace cannot record. */
export class TraceError extends FxError {}
/** A pattern, a replacement or a pass does not fit the graph. */
export class RewriteError extends FxError {}
/** What is said of dynamic sizes and what a module does with them do not go together. */
export class ExportError extends FxError {}
/** The engine itself failed. */
export class EngineError extends FxError {}

const CLASSES: Record<ErrorClass, typeof FxError> = {
  ArchiveError,
  GraphError,
  OperatorError,
  NotImplementedError,
  WireError,
  InputError,
  UsageError,
  TraceError,
  RewriteError,
  ExportError,
  EngineError,
};

/**
 * An error of the class that its kind belongs to.
 *
 * @example
 * ```ts
 * throw fxError("NodeHasUsers", "%add is used by %relu", { node: "add", help: "replace its uses first" });
 * ```
 */
export function fxError(kind: ErrorName, reason: string, details?: ErrorDetails): FxError {
  const error = new CLASSES[ERRORS[kind].class](kind, reason, details);
  beginAtUser(error, fxError);
  return error;
}

/**
 * Says in an error itself where it happened: what runs a graph knows it, and what failed did not. The error stays the
 * same object of the same class; the innermost node is its `node`, and every note is told once.
 */
export function addContext(error: Error, node: string, note: string): void {
  if (!(error instanceof Error)) return;
  const { message: before, stack } = error;
  if (error instanceof FxError) {
    if (error.notes.includes(note)) return;
    Reflect.set(error, "notes", [...error.notes, note]);
    Reflect.set(error, "node", error.node ?? node);
    Reflect.set(error, "message", text(error.kind, error.reason, error));
  } else {
    if (before.includes(note)) return;
    Reflect.set(error, "message", before === "" ? note : `${before}\n\n${note}`);
  }
  // V8 wrote the message into the stack when the error was made, and prints the stack.
  if (typeof stack === "string")
    Reflect.set(
      error,
      "stack",
      stack.replace(before, () => error.message),
    );
}

/** The text of an error, as the native command prints it. */
function text(kind: ErrorName, reason: string, { node, op, notes, help }: ErrorDetails): string {
  const place = [node === undefined ? undefined : `%${node}`, op].filter((it) => it !== undefined).join(", ");
  const where = place === "" ? "" : node === undefined ? ` (in ${place})` : ` (at ${place})`;
  const lines = [`${ERRORS[kind].code}: ${reason}${where}`];
  for (const note of notes ?? []) lines.push(`  note: ${note}`);
  if (help !== undefined) lines.push(`  help: ${help}`);
  return lines.join("\n");
}
