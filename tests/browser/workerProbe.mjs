/** What tests ask of a page with the engine in a worker: the built package, under a global name. */
import * as worker from "../../ts/dist/worker/engineWorker.js";

Object.assign(globalThis, { workerProbe: worker });
