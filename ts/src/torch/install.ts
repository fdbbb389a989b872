/**
 * Puts the members on tensors that need the engine, and the operators where graphs find them. Importing this is enough.
 *
 * @module
 */
import { installMembers } from "../functions/tensorMembers.ts";
import { installComposed } from "./composed.ts";
import { installOperators } from "./operators.ts";

installMembers();
installOperators();
installComposed();
