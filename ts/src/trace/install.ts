/**
 * Puts the functions of PyTorch where graphs and traces find them. Importing this is enough.
 *
 * @module
 */
import { installFunctionalized } from "../fx/functionalized.ts";
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors and operators into the table
import "../torch/install.ts";
import { installHigherOrder } from "./higherOrderFunctions.ts";

installFunctionalized();
installHigherOrder();
