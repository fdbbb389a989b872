/**
 * What the conformance runner asks of an engine, and what it says of a case.
 *
 * @module
 */

/** @typedef {import("tracefx").Tensor} Tensor */

/**
 * What came of one case; where it is a program, how far its floats lie at most from those recorded.
 * @typedef {{ name: string, status: "passed" | "failed" | "skipped" | "differs", detail?: string, largest?: number }} Result
 */

/**
 * A leaf of the inputs: Python tells an int from a float, so the kind is said.
 * @typedef {{ kind: "tensor", value: Tensor } | { kind: "int" | "float", value: number | bigint }
 *   | { kind: "bool", value: boolean } | { kind: "str", value: string } | { kind: "none", value: null }} Input
 */

/** @typedef {Tensor | number | bigint | boolean | string | null} Output */

/** @typedef {{ kind: string, target: string | null | undefined }} OutputSpec */

/**
 * How programs run: in terms of core operators; saved and opened again before they run; the folder in which each saved
 * archive is kept under its name.
 * @typedef {{ decompose: boolean, resave: boolean, resaveTo?: string | undefined }} Way
 */

/**
 * A call of an operator: values as in `crates/cli/src/session.rs`.
 * @typedef {{ op: string, args: unknown[], kwargs: Record<string, unknown>, seed?: number }} Call
 */

/**
 * What came of a call: results with their tensors in place, or why it was refused; whether it drew random numbers; and what
 * is known of the results without data.
 * @typedef {{ results?: any[], error?: import("tracefx").FxError, drew?: boolean, promised: any }} Answer
 */

/**
 * @typedef {object} Engine
 * @property {(file: string, decompose: boolean, resave: boolean | string) => Promise<{ graph: string, operators: string[], outputs: OutputSpec[] }>} open
 *   Opens a program, in terms of core operators if that is asked for; saves it as an archive of PyTorch (in a file of this
 *   name) and opens that, if that is asked for; gives its graph as text, what it and its sub-graphs
 *   call, and what the outputs of a call are.
 * @property {() => Promise<void>} define Defines the custom operators of the recorded programs (`library.mjs`).
 * @property {() => Promise<void>} start Makes the open program ready, with its state as in the file.
 * @property {(inputs: Input[]) => Promise<{ outputs: Output[], inputs: (Tensor | undefined)[] }>} run Calls it; gives the
 *   outputs, and the inputs as they are then.
 * @property {(calls: Call[], tensors: Map<string, Tensor>) => Promise<Answer[]>} call Calls operators, each on data of its
 *   own; gives what came of each.
 * @property {(names: string[]) => Promise<Map<string, Tensor>>} state Parameters and buffers as they are now.
 * @property {() => readonly (string | null)[]} [steps] Of each step of the plans that have run beside a device, why the CPU
 *   does it, or nothing where the device does.
 * @property {() => Promise<void>} close Gives everything back.
 */

/** The kinds of outputs that a call gives; new values of state are written back instead. */
export const RESULTS = new Set(["USER_OUTPUT", "LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT"]);
