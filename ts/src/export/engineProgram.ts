/**
 * Programs in the engine, and what runs them there.
 *
 * @module
 */
import type { Engine } from "../engine/engine.ts";

/** A program in the engine. */
export type EngineProgram = ReturnType<Engine["Program"]["open"]>;

/** What runs a program in the engine. */
export type EngineRunner = ReturnType<EngineProgram["runner"]>;
