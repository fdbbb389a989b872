/**
 * `npx tracefx doctor`: what this machine has for running programs in Node.
 *
 * @module
 */
import { arch, availableParallelism, cpus, platform, release } from "node:os";
import type { FINDINGS } from "../../../bindings/command.ts";
import { FxError } from "../base/errors.ts";
import { call, getNumThreads, init, isRelaxed } from "../engine/engine.ts";
import { canHaveThreads } from "../engine/threads.ts";
import { canRunEngine } from "../engine/variant.ts";

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
  const canRun = canRunEngine();
  if (!canRun) {
    isReady = false;
    lacks("simd", "this host has no WebAssembly with SIMD", "use Node 20.19 or later, without --jitless");
  }
  const engine = canRun ? await engineVersion() : undefined;
  if (engine instanceof Error) {
    isReady = false;
    lacks("engine", engine.message, "install the package again: npm install tracefx");
  }
  const vectors = !canRun ? "none" : isRelaxed() ? "simd128, relaxed" : "simd128";
  const gpu = await gpuOfHost();
  if (gpu instanceof FxError) {
    lacks("gpu", gpu.reason, gpu.help ?? "cargo install tracefx-cli");
  } else if (gpu.is_software) {
    const what = `${gpu.name} is a processor that does the work of a GPU, and is slower than the CPU`;
    lacks("gpu", what, "install the driver of the GPU, where there is one");
  }
  const processors = availableParallelism();
  const threads = typeof engine === "string" ? getNumThreads() : 1;
  if (threads < processors) {
    const what = `runs use ${threads} of ${processors} processors`;
    const cure = "change or unset TRACEFX_NUM_THREADS, or say how many: init({ threads })";
    lacks("threads", what, canHaveThreads() ? cure : "use Node 22 or later, or the native command");
  }
  const version = typeof engine === "string" ? engine : null;
  if (isJson) {
    const facts: Record<(typeof FINDINGS)[number], unknown> = {
      version,
      command: "node",
      node,
      os: OS[platform()] ?? platform(),
      arch: ARCH[arch()] ?? arch(),
      processors,
      threads,
      vectors,
      gpu: gpu instanceof FxError ? null : gpu,
      missing,
      is_ready: isReady,
    };
    return { text: JSON.stringify(facts), isReady };
  }
  const lines = [
    `tracefx ${version ?? "without an engine"}, of npx`,
    `system      ${platform()} ${release()} ${arch()}`,
    `node        ${node}`,
    `processors  ${processors}, ${cpus()[0]?.model ?? "unknown"}`,
    `threads     ${threads}`,
    `vectors     ${vectors}`,
    `GPU         ${gpu instanceof FxError ? "none" : gpu.name}`,
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

/** What Rust, and so `doctor --json` of both commands, calls systems and processors that Node calls otherwise. */
const OS: Readonly<Record<string, string>> = { darwin: "macos", win32: "windows" };
const ARCH: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64", ia32: "x86" };

/** The GPU that programs in Node find, or why they find none. */
async function gpuOfHost(): Promise<{ readonly name: string; readonly is_software: boolean } | FxError> {
  try {
    // It is loaded when a GPU is asked for.
    const { findAdapter } = await import("../gpu/device.ts");
    const { info } = await findAdapter();
    const name = info.description || `${info.vendor} ${info.architecture}`.trim() || "WebGPU";
    return { name, is_software: info.isFallbackAdapter === true };
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
}

async function engineVersion(): Promise<string | Error> {
  try {
    await init();
    return call((engine) => engine.engine_version());
  } catch (error) {
    return error as Error;
  }
}
