/** What the tests ask of the page: the built package as a module script sees it, under a global name. */
import { call } from "../../ts/dist/engine/engine.js";
import { PlanOnGpu } from "../../ts/dist/gpu/plan.js";
import * as tracefx from "../../ts/dist/index.js";
import { counter } from "./gpuCounter.mjs";
import * as helpers from "./gpuHelpers.mjs";

Object.assign(globalThis, helpers, { probe: { ...tracefx, call, PlanOnGpu, counter } });
