/**
 * `npx tracefx doctor`: what this machine has for running programs in Node.
 *
 * @module
 */
import { arch, availableParallelism, cpus, platform, release } from "node:os";
import { call, init } from "../engine/engine.ts";
import { bestVariant } from "../engine/variant.ts";

/** Something that is not there, and what to do. */
interface Missing {
  readonly of: string;
  readonly what: string;
  readonly cure: string;
}

/** Tells what there is, and whether programs run. */
export async function examine(isJson: boolean): Promise<{ readonly text: string; readonly isReady: boolean }> {
  const missing: Missing[] = [];
  const node = process.versions.node;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  let isReady = true;
  const lacks = (of: string, what: string, cure: string): void => {
    missing.push({ of, what, cure });
  };
  if (major < 20 || (major === 20 && minor < 19)) {
    isReady = false;
    lacks("node", `Node ${node} is older than 20.19`, "install Node 22 or later from https://nodejs.org");
  }
  const variant = bestVariant();
  if (variant === undefined) {
    isReady = false;
    lacks("simd", "this host has no WebAssembly with SIMD", "use Node 20.19 or later, without --jitless");
  }
  const engine = variant === undefined ? undefined : await engineVersion();
  if (engine instanceof Error) {
    isReady = false;
    lacks("engine", engine.message, "install the package again: npm install tracefx");
  }
  const vectors = variant === undefined ? "none" : "simd128";
  const gpu = (globalThis.navigator as { readonly gpu?: unknown } | undefined)?.gpu !== undefined;
  if (!gpu)
    lacks(
      "gpu",
      "Node has no WebGPU",
      "npm install webgpu for programs in Node; for the shell, cargo install tracefx-cli",
    );
  const processors = availableParallelism();
  if (processors > 1) {
    const what = `runs use 1 of ${processors} processors: the engine has no threads in WebAssembly`;
    lacks("threads", what, "use the native command, which has, or several workers");
  }
  const version = typeof engine === "string" ? engine : null;
  const os = platform();
  const processor = cpus()[0]?.model ?? "unknown";
  const facts = { version, command: "node", node, os, arch: arch(), processor, processors, threads: 1, vectors, gpu };
  if (isJson) return { text: JSON.stringify({ ...facts, missing, is_ready: isReady }), isReady };
  const lines = [
    `tracefx ${version ?? "without an engine"}, of npx`,
    `system      ${os} ${release()} ${arch()}`,
    `node        ${node}`,
    `processors  ${processors}, ${processor}`,
    "threads     1",
    `vectors     ${vectors}`,
    `GPU         ${gpu ? "WebGPU" : "none"}`,
    "",
    ...missing.map((it) => `${it.of}: ${it.what}\n  help: ${it.cure}`),
    ...(missing.length > 0 ? [""] : []),
    isReady
      ? missing.length > 0
        ? "Programs run; these would make them faster."
        : "Nothing is missing."
      : "Programs do not run.",
  ];
  return { text: lines.join("\n"), isReady };
}

async function engineVersion(): Promise<string | Error> {
  try {
    await init();
    return call((engine) => engine.engine_version());
  } catch (error) {
    return error as Error;
  }
}
