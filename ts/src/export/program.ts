/**
 * What an exported program consists of, without what can be done with it.
 *
 * @module
 */
import type { GraphModule } from "../fx/graphModule.ts";
import type { Complex, DeviceArg, DTypeArg, Float, LayoutArg, MemoryFormatArg } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Argument, GraphSignature } from "./signature.ts";

/** A parameter or persistent buffer. */
export interface StateEntry {
  readonly tensor: Tensor;
  readonly isParameter: boolean;
  readonly requiresGrad: boolean;
}

/** Something that a program holds besides its state: a tensor, or a custom object as the bytes of its pickle. */
export type Constant =
  | { readonly kind: "tensor"; readonly tensor: Tensor }
  | { readonly kind: "customObj"; readonly bytes: Uint8Array };

/** The structure of nested inputs or outputs: PyTorch's pytree `TreeSpec`. */
export interface TreeSpec {
  /** The container's type, such as `builtins.tuple`; undefined for a leaf. */
  readonly type: string | undefined;
  /** What the type needs besides the children, as JSON text: the keys of a dict, for one. */
  readonly context: string | undefined;
  readonly children: readonly TreeSpec[];
}

/** The signature of a module whose calls are to be kept. */
export interface CallSignature {
  readonly inputs: readonly Argument[];
  readonly outputs: readonly Argument[];
  /** The structure of `(args, kwargs)`. */
  readonly inSpec: TreeSpec;
  readonly outSpec: TreeSpec;
  readonly forwardArgNames: readonly string[] | undefined;
}

/** One module that the traced code called; the root has an empty name. */
export interface ModuleCallEntry {
  readonly fqn: string;
  readonly signature: CallSignature | undefined;
}

/** What is known of a symbol without looking at its range: sympy's assumptions. */
export interface SymbolAssumptions {
  readonly integer: boolean;
  readonly positive: boolean;
  readonly nonnegative: boolean;
  readonly real: boolean;
}

/** The values that a symbol may have; undefined is no bound. */
export interface RangeConstraint {
  readonly assumptions: SymbolAssumptions;
  readonly min: number | bigint | undefined;
  readonly max: number | bigint | undefined;
}

/** An input that the program was exported with. */
export type ExampleInput =
  | Tensor
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Complex
  | DTypeArg
  | DeviceArg
  | LayoutArg
  | MemoryFormatArg
  | readonly ExampleInput[];

/** The parts of an exported program, as files hold them. */
export interface ProgramParts {
  graphModule: GraphModule;
  graphSignature: GraphSignature;
  /** Parameters and persistent buffers by qualified name. */
  state: Map<string, StateEntry>;
  /** Entries of the state that only Python can make again, as the bytes of their pickles. */
  opaqueState: Map<string, Uint8Array>;
  /** Lifted constants, buffers that are not saved, and custom objects, by qualified name. */
  constants: Map<string, Constant>;
  /** The values that symbols may have, by their names. */
  rangeConstraints: Map<string, RangeConstraint>;
  moduleCallGraph: ModuleCallEntry[];
  /** The dialects that the graph was checked against. */
  verifiers: string[];
  /** Conditions on the inputs as Python expressions. */
  guards: string[];
  /** The inputs that the program was exported with, flattened; undefined where the file has none that can be read. */
  exampleInputs: readonly ExampleInput[] | undefined;
  opsetVersion: Map<string, number>;
  schemaVersion: readonly [major: number, minor: number];
  torchVersion: string;
  /** The fields of the named tuples among inputs and outputs. */
  namedtupleFields: Map<string, string[]>;
  /** Texts that the user saved beside the program. */
  extraFiles: Map<string, string>;
}
