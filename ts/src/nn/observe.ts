/**
 * Who sees that modules are used: a tracer.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import type { Attribute, Module } from "./module.ts";

/** A call of a module. */
export interface ModuleCall {
  readonly module: Module;
  /** Calls the module's `forward`, with its hooks. */
  readonly run: (...args: unknown[]) => unknown;
  readonly args: readonly unknown[];
}

/** What a trace does when modules are used; a tracer. */
export interface ModuleObserver {
  /** A module is called. */
  callModule(call: ModuleCall): unknown;
  /** A parameter, buffer or constant is read. */
  getattr(module: Module, name: string, attribute: Attribute & { readonly tensor: Tensor }): unknown;
}

let observer: ModuleObserver | undefined;

/** Runs `body` while `next` sees what happens to modules. */
export function observeModules<T>(next: ModuleObserver | undefined, body: () => T): T {
  const previous = observer;
  observer = next;
  try {
    return body();
  } finally {
    observer = previous;
  }
}

/** Who sees what happens to modules now. */
export function currentObserver(): ModuleObserver | undefined {
  return observer;
}
