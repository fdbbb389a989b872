/**
 * Puts the members on tensors that need the engine, and the functions of PyTorch where graphs find them. Importing this is
 * enough; the entry points of the package do.
 *
 * @module
 */
import { installTreeFunctions } from "./export/treeFunctions.ts";
import { installOperators } from "./torch/operators.ts";
import { installFunctionalized } from "./fx/functionalized.ts";
import { installMembers } from "./functions/tensorMembers.ts";
import { installComposed } from "./torch/composed.ts";
import { installHigherOrder } from "./trace/higherOrderFunctions.ts";

installMembers();
installOperators();
installFunctionalized();
installComposed();
installTreeFunctions();
installHigherOrder();
