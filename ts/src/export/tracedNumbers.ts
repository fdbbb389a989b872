/**
 * The unbacked numbers of an export, and where the graph gets them from.
 *
 * @module
 */
import { recordingOperators } from "../engine/recorder.ts";
import { fxError } from "../base/errors.ts";
import type { Arg } from "../graph/args.ts";
import { nameOfTarget } from "../graph/editableGraph.ts";
import { Node } from "../graph/node.ts";
import { SymExpr, type SymInt, type Val } from "../graph/val.ts";
import { COMPOSED_NUMBERS } from "./composedNumbers.ts";
import { currentPlace, withoutTraced } from "./recordedCall.ts";
import type { ShapeSession } from "./shapes.ts";
import { type NumberOrigin, TracedNumber, TracedTensor, type ValueTracer } from "./traced.ts";

/** Who writes the nodes. */
interface NodeRecorder {
  callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown;
  createArg(value: unknown): Arg;
  createNode(
    op: "call_function",
    target: string,
    args: readonly Arg[],
    kwargs: Readonly<Record<string, Arg>>,
    name?: string,
  ): Node;
}

/** Numbers by their expressions. A node that computes one is made where the graph first needs it. */
export class TracedNumbers implements ValueTracer {
  readonly #shapes: ShapeSession;
  readonly #recorder: NodeRecorder;
  readonly #known = new Map<string, TracedNumber>();
  readonly #origins = new Map<TracedNumber, NumberOrigin | Node>();

  constructor(shapes: ShapeSession, recorder: NodeRecorder) {
    this.#shapes = shapes;
    this.#recorder = recorder;
  }

  number(expr: SymInt | boolean, origin?: NumberOrigin | Node): unknown {
    if (!(expr instanceof SymExpr)) return typeof expr === "bigint" ? Number(expr) : expr;
    let known = this.#known.get(expr.srepr);
    if (known === undefined) {
      known = new TracedNumber(expr, this);
      this.#known.set(expr.srepr, known);
    }
    if (origin !== undefined && !this.#origins.has(known)) this.#origins.set(known, origin);
    return known;
  }

  item(tensor: TracedTensor): unknown {
    return this.#recorder.callOperator("aten.item", [tensor], {});
  }

  compute(target: string, args: readonly unknown[]): unknown {
    const composed = COMPOSED_NUMBERS.get(target)?.((name, given) => this.compute(name, given), ...args);
    if (composed !== undefined) return composed;
    const plain = args.map((it) => (it instanceof TracedTensor ? it.meta : withoutTraced(it)));
    const name = target.replace(/^torch\.ops\./, "");
    const result = recordingOperators(undefined, () => this.#shapes.call(name, plain)) as SymInt | boolean;
    return this.number(result, { target, args });
  }

  decide({ expr }: TracedNumber): boolean {
    return recordingOperators(undefined, () => this.#shapes.decide(expr, currentPlace()));
  }

  hint({ expr }: TracedNumber): number | boolean | undefined {
    return this.#shapes.hint(expr);
  }

  simplify({ expr }: TracedNumber): SymInt | boolean {
    return this.#shapes.simplify<Val>(expr) as SymInt | boolean;
  }

  check(number: TracedNumber, message: string): void {
    const { expr } = number;
    // PyTorch records the comparison, and takes it out again, since nothing uses it: its name is taken.
    if (expr instanceof SymExpr) this.nodeOf(number);
    recordingOperators(undefined, () => this.#shapes.check(expr, message === "" ? undefined : message));
  }

  /** The node that gives a number. */
  nodeOf(number: TracedNumber): Node {
    const origin = this.#origins.get(number);
    if (origin === undefined) throw fxError("Internal", `nothing gives the size ${number.expr.srepr}`);
    if (origin instanceof Node) return origin;
    const { target } = origin;
    const args = origin.args.map((it) => this.#recorder.createArg(it));
    const node = this.#recorder.createNode("call_function", target, args, {}, nameOfTarget("call_function", target));
    node.meta.set("val", number.expr);
    this.#origins.set(number, node);
    return node;
  }
}
