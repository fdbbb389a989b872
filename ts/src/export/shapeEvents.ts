/**
 * What was asked of a session of shapes, to be asked again: `torch.fx.experimental.recording`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven, checkList } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { formatTensorMeta } from "../graph/shapes.ts";
import { TensorMeta } from "../graph/val.ts";
import type { ShapeSession } from "./shapes.ts";

const NAMES = ["ShapeSession", "infer", "decide", "check"] as const;

/** The methods of a session that change what it knows. */
export type ShapeEventName = (typeof NAMES)[number];

/**
 * A call that changed what a session knows, or the one that made it: `ShapeEnvEvent`.
 *
 * @example
 * ```ts
 * shapes.events.filter((it) => it.isEvaluateExpr()).map(String); // ["event: decide (s77 > 3)"]
 * ```
 */
export class ShapeEnvEvent {
  /** The method that was called; `ShapeSession` is the constructor. */
  readonly name: ShapeEventName;
  /** What it was called with. Tensors are what was known of them. */
  readonly args: readonly unknown[];

  readonly #make: (() => ShapeSession) | undefined;

  /** For sessions only, which note their calls. */
  constructor(name: ShapeEventName, args: readonly unknown[], make?: () => ShapeSession) {
    checkGiven("ShapeEnvEvent", NAMES.includes(name), `one of ${NAMES.join(", ")} as its name`);
    checkList("ShapeEnvEvent", "args", args);
    this.name = name;
    this.args = args;
    this.#make = make;
  }

  /** Calls the same of another session; the first event makes one. */
  run(session?: ShapeSession): unknown {
    if (this.name === "ShapeSession") return this.#make?.();
    checkSession("ShapeEnvEvent.run", session);
    const method = session[this.name] as (...args: readonly unknown[]) => unknown;
    return method.apply(session, [...this.args]);
  }

  /** Whether it computes something of sizes. */
  isCreateFxCallFunction(): boolean {
    return this.name === "infer";
  }

  /** Whether it decides something by the examples. */
  isEvaluateExpr(): boolean {
    return this.name === "decide";
  }

  /** Whether it takes something to hold. */
  isDeferRuntimeAssert(): boolean {
    return this.name === "check";
  }

  toString(): string {
    return `event: ${this.name} (${this.args
      .filter((it) => it !== undefined)
      .map(shown)
      .join(", ")})`;
  }
}

/**
 * A session that knows what another one knew after these events: `replay_shape_env_events`.
 *
 * @example
 * ```ts
 * using again = replayShapeEnvEvents(shapes.events);
 * again.checkEqual(shapes);
 * ```
 */
export function replayShapeEnvEvents(events: readonly ShapeEnvEvent[]): ShapeSession {
  checkList("replayShapeEnvEvents", "the events", events);
  const [first, ...others] = events;
  const isWhole = events.every((it) => it instanceof ShapeEnvEvent) && first?.name === "ShapeSession";
  checkGiven("replayShapeEnvEvents", isWhole, "events, the first of which makes a session", "give session.events");
  const res = first?.run() as ShapeSession;
  try {
    for (const it of others) it.run(res);
  } catch (error) {
    res[Symbol.dispose]();
    throw error;
  }
  return res;
}

/**
 * Refuses sessions that know different things: `shape_env_check_state_equal`.
 *
 * @example
 * ```ts
 * shapeEnvCheckStateEqual(shapes, replayShapeEnvEvents(shapes.events));
 * ```
 * @throws {@link OperatorError} with what differs, as PyTorch's `NotEqualError`.
 */
export function shapeEnvCheckStateEqual(first: ShapeSession, second: ShapeSession): void {
  checkSession("shapeEnvCheckStateEqual", first);
  checkSession("shapeEnvCheckStateEqual", second);
  const [known, other] = [first.state(), second.state()];
  const differences = (Object.keys(known) as (keyof typeof known)[]).filter((it) => known[it] !== other[it]);
  if (differences.length === 0) return;
  throw fxError("AssertionFailed", "ShapeEnv not equal: field values don't match", {
    notes: differences.map((it) => `${it}: values don't match. Left: ${known[it]}, right: ${other[it]}`),
  });
}

function shown(value: unknown): string {
  if (value instanceof TensorMeta) {
    const { dtype, sizes } = formatTensorMeta(value);
    return `${dtype}${sizes}`;
  }
  if (Array.isArray(value)) return `[${value.map(shown).join(", ")}]`;
  if (!isOptions(value)) return String(value);
  return `{${Object.entries(value)
    .map(([key, it]) => `${key}: ${shown(it)}`)
    .join(", ")}}`;
}

function checkSession(what: string, session: unknown): asserts session is ShapeSession {
  checkGiven(what, typeof (session as Partial<ShapeSession> | undefined)?.state === "function", "a ShapeSession");
}
