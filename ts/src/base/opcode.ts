/**
 * What the nodes of a graph do.
 *
 * @module
 */
import type { OPCODES } from "../../../bindings/wire.ts";

/** What a node does, as PyTorch spells it. */
export type Opcode = (typeof OPCODES)[number];
