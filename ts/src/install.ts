/**
 * Puts the members on tensors that need the engine, and the functions of PyTorch where graphs find them. Importing this is
 * enough; the entry points of the package do.
 *
 * @module
 */
import { installTreeFunctions } from "./export/treeFunctions.ts";
// oxlint-disable-next-line import/no-unassigned-import -- what traces and graph modules need
import "./trace/install.ts";

installTreeFunctions();
