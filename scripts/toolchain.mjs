/**
 * Finds the tools that the builds need and installs what it can: the compiler for WebAssembly, a browser, and a GPU of software.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { logged, Problem, tail } from "./progress.mjs";

/** The oldest Rust that the workspace compiles with. */
const RUST = { major: 1, minor: 95 };

const NIGHTLY = ["rustup", "toolchain", "install", "nightly", "--profile", "minimal", "-c", "rust-src"];
const DEBIAN = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];
const CHROMIUM = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const CHROMIUM_ELSEWHERE = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** The output of a command, or undefined if it failed. */
function output(/** @type {string} */ program, /** @type {string[]} */ ...args) {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8", env: withoutOverride() });
  return status === 0 ? stdout.trim() : undefined;
}

/** The environment without the toolchain that a surrounding cargo or rustup chose. */
function withoutOverride() {
  const { RUSTUP_TOOLCHAIN: _, ...env } = process.env;
  return env;
}

/** The full path of a program. */
function which(/** @type {string} */ program) {
  const names = process.platform === "win32" ? [`${program}.exe`, `${program}.cmd`] : [program];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path));
}

/** The version of Rust; refuses one that is missing or too old, and a machine without a linker. */
export function rust() {
  const version = output("rustc", "--version");
  if (version === undefined || output("cargo", "--version") === undefined) {
    throw new Problem("Rust is not installed; install it with rustup (https://rustup.rs), then run this again");
  }
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) < RUST.major || (Number(major) === RUST.major && Number(minor) < RUST.minor)) {
    throw new Problem(`${version} is too old, ${RUST.major}.${RUST.minor} is needed; run: rustup update stable`);
  }
  if (process.platform === "linux" && which("cc") === undefined) {
    throw new Problem("there is no linker (cc); on Debian and Ubuntu run: apt-get install build-essential");
  }
  return version;
}

/** A name and version of the toolchain that can build for WebAssembly, if there is one. `cargo xtask wasm` uses it. */
export function wasmToolchain() {
  const sysroot = output("rustup", "run", "nightly", "rustc", "--print", "sysroot");
  if (sysroot !== undefined && hasSources(sysroot)) return output("rustup", "run", "nightly", "rustc", "--version");
  const linker = existsSync("/usr/bin") && readdirSync("/usr/bin").some((name) => /^wasm-ld(-\d+)?$/.test(name));
  const debian = existsSync("/usr/bin/cargo") && existsSync("/usr/bin/rustc") && hasSources("/usr") && linker;
  return debian ? output("/usr/bin/rustc", "--version") : undefined;
}

function hasSources(/** @type {string} */ sysroot) {
  return existsSync(join(sysroot, "lib", "rustlib", "src", "rust", "library", "std"));
}

/** Installs a toolchain for WebAssembly: with rustup, else from Debian's packages. */
export async function installWasmToolchain() {
  const attempts = [];
  if (which("rustup") !== undefined) {
    const present = output("rustup", "run", "nightly", "rustc", "--version") !== undefined;
    const command = present ? ["rustup", "component", "add", "--toolchain", "nightly", "rust-src"] : NIGHTLY;
    attempts.push(await logged("wasm-toolchain", command));
    if (wasmToolchain() !== undefined) return;
  }
  if (canInstallPackages()) {
    attempts.push(await installPackages("wasm-toolchain", DEBIAN));
    if (wasmToolchain() !== undefined) return;
  }
  const [last] = attempts.slice(-1);
  const commands = [NIGHTLY.join(" "), `apt-get install ${DEBIAN.join(" ")}`];
  throw new Problem(
    [
      "no toolchain here can build the standard library of Rust for WebAssembly; run one of these, then this again:",
      ...commands.map((command) => `    ${command}`),
      ...(last === undefined ? [] : ["the last attempt said:", tail(last.log, 15)]),
    ].join("\n"),
  );
}

/** Where Chromium or Chrome is; `TRACEFX_CHROMIUM` overrides the search. */
export function chromium() {
  const chosen = process.env["TRACEFX_CHROMIUM"];
  if (chosen !== undefined && chosen !== "") return chosen;
  return CHROMIUM.map(which).find((path) => path !== undefined) ?? CHROMIUM_ELSEWHERE.find((path) => existsSync(path));
}

/** Installs Chromium from Debian's packages. */
export async function installChromium() {
  if (canInstallPackages()) {
    const attempt = await installPackages("chromium", ["chromium"]);
    if (chromium() !== undefined) return;
    throw new Problem(`Chromium could not be installed:\n${tail(attempt.log, 15)}`);
  }
  throw new Problem(
    "the browser tests need Chromium; on Debian run: apt-get install chromium, elsewhere install Chrome or set TRACEFX_CHROMIUM",
  );
}

/** Where drivers of Vulkan say that they are there. */
const VULKAN_DRIVERS = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/** Whether there is a driver of Vulkan, as which a processor counts that does the work of a GPU. */
export function hasVulkan() {
  return VULKAN_DRIVERS.some((folder) => existsSync(folder) && readdirSync(folder).length > 0);
}

/** Installs a driver for machines without a GPU from Debian's packages, where that can be; tests say where there is none. */
export async function installVulkan() {
  if (canInstallPackages()) await installPackages("vulkan", ["mesa-vulkan-drivers"]);
}

function canInstallPackages() {
  return process.platform === "linux" && which("apt-get") !== undefined && process.getuid?.() === 0;
}

/** Installs packages of the operating system, with fresh lists. */
async function installPackages(/** @type {string} */ log, /** @type {readonly string[]} */ packages) {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const wait = ["-o", "DPkg::Lock::Timeout=300"];
  await logged(log, ["apt-get", ...wait, "update"], { env, append: true });
  const install = ["apt-get", ...wait, "install", "-y", "--no-install-recommends", ...packages];
  return await logged(log, install, { env, append: true });
}
