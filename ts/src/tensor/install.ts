/**
 * Puts the members on tensors that need the engine. Importing this is enough; the entry points of the package do.
 *
 * @module
 */
import { installMembers } from "./members.ts";

installMembers();
