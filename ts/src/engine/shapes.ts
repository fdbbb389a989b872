/**
 * The sizes of an export in the engine, by its words.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { tensorVal } from "./tensorMetadata.ts";
import { Tensor } from "../tensor/tensor.ts";
import { call, type Engine, generation } from "./engine.ts";
import { autocastDtype } from "./modes.ts";
import { moveToEngine, readerOf } from "./tensors.ts";
import { type EngineValue, ValueWriter } from "./values.ts";

/** What the engine found when an export came to its end. */
export interface EngineShapeResult {
  readonly ranges: readonly (readonly [text: string, srepr: string, min: number | null, max: number | null])[];
  readonly guards: readonly string[];
  readonly assertions: readonly (readonly [text: string, srepr: string, message: string | null])[];
}

/** The words of the question that is being asked; it is answered before the next one begins. */
const writer = new ValueWriter(moveToEngine);

/** The engine's session of shapes. Tensors among values stand for what is known of them. */
export class EngineShapes implements Disposable {
  readonly #session: InstanceType<Engine["ShapeSession"]>;
  readonly #generation = generation();
  #isDisposed = false;
  #place: string | undefined;

  /** A session of inputs; `said` is what the user said of each. */
  constructor(values: readonly unknown[], said: object) {
    const words = plain(values);
    this.#session = call((engine) => new engine.ShapeSession(words, JSON.stringify(said)));
  }

  /** What is known of the inputs. */
  values(): EngineValue[] {
    return this.#read((it) => it.values());
  }

  /** What is known of the results of a call, under the autocast that holds now. */
  infer(
    name: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    place: string | undefined,
  ): EngineValue[] {
    this.#setPlace(place);
    writer.clear();
    writer.values(args.map(withoutData), (at) => `argument ${at} of ${name}`);
    const named = Object.entries(kwargs);
    writer.word(named.length);
    for (const [key, value] of named) {
      writer.text(key);
      writer.value(withoutData(value), () => `argument \`${key}\` of ${name}`);
    }
    return this.#read((it) => it.infer(name, writer.finish(), autocastDtype()));
  }

  /** What a function of numbers gives. */
  call(name: string, args: readonly unknown[]): EngineValue | undefined {
    return this.infer(name, args, {}, undefined)[0];
  }

  /** Takes a relation of numbers to hold: `operator.le`. */
  require(relation: string, args: readonly unknown[]): void {
    const condition = this.call(relation, args);
    if (condition === false)
      throw fxError("AssertionFailed", `${relation} does not hold of ${args.map(String).join(", ")}`);
    if (condition !== true) this.check(condition, undefined, undefined);
  }

  /** Whether a condition holds. */
  decide(condition: unknown, place: string | undefined): boolean {
    this.#setPlace(place);
    return this.#ask((it) => it.decide(plain([condition])));
  }

  /** Takes a condition to hold. */
  check(condition: unknown, message: string | undefined, place: string | undefined): void {
    this.#setPlace(place);
    this.#ask((it) => it.check(plain([condition]), message));
  }

  /** What an expression is for the examples; null where nothing tells it. */
  hint(expr: unknown): EngineValue | undefined {
    return this.#read((it) => it.hint(plain([expr])))[0];
  }

  /** Values in terms of the symbols that are left. */
  replace(values: readonly unknown[]): EngineValue[] {
    return this.#read((it) => it.replace(plain(values)));
  }

  /** Compares what became of the sizes with what the user said. */
  finish(): EngineShapeResult {
    return JSON.parse(this.#ask((it) => it.finish())) as EngineShapeResult;
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#generation === generation()) this.#session.free();
  }

  #setPlace(place: string | undefined): void {
    if (place === this.#place) return;
    this.#place = place;
    this.#ask((it) => it.set_place(place));
  }

  #read(body: (session: InstanceType<Engine["ShapeSession"]>) => Uint32Array): EngineValue[] {
    const reader = readerOf(this.#ask(body));
    const res: EngineValue[] = [];
    while (!reader.isDone) res.push(reader.value());
    return res;
  }

  #ask<T>(body: (session: InstanceType<Engine["ShapeSession"]>) => T): T {
    if (this.#isDisposed || this.#generation !== generation()) {
      throw fxError("Disposed", "the session of shapes was disposed", { help: "make another one for another export" });
    }
    return call(() => body(this.#session));
  }
}

function plain(values: readonly unknown[]): Uint32Array {
  writer.clear();
  for (const [at, value] of values.entries()) writer.value(withoutData(value), () => `value ${at}`);
  return writer.finish();
}

function withoutData(value: unknown): unknown {
  if (value instanceof Tensor) return tensorVal(value);
  return Array.isArray(value) ? value.map(withoutData) : value;
}
