/**
 * Builds the wheel of the Python package and tests it, in an environment of its own: `npm run python [-- --torch]`.
 *
 * With `--torch` PyTorch is installed, which is large, and what needs it is tested, too.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CACHE, elapsed, report, ROOT } from "./progress.mjs";

const FOLDER = join(ROOT, "python");
const HOME = join(CACHE, "python");
const WHEELS = join(HOME, "wheels");
const BIN = join(HOME, "venv", process.platform === "win32" ? "Scripts" : "bin");

const run = (/** @type {string} */ program, /** @type {string[]} */ ...args) =>
  execFileSync(program, args, { cwd: FOLDER, stdio: "inherit" });

const start = performance.now();
if (!existsSync(BIN)) run(process.platform === "win32" ? "python" : "python3", "-m", "venv", join(HOME, "venv"));
const python = join(BIN, "python");
const pip = (/** @type {string[]} */ ...args) => run(python, "-m", "pip", "install", "--quiet", ...args);
pip("--requirement", "requirements-test.txt");
if (process.argv.includes("--torch")) pip("--requirement", "requirements-torch.txt");

run("cargo", "clippy", "--locked", "--", "-D", "warnings");
rmSync(WHEELS, { recursive: true, force: true });
run(join(BIN, "maturin"), "build", "--release", "--locked", "--out", WHEELS);
const [wheel] = readdirSync(WHEELS);
if (wheel === undefined) throw new Error("maturin made no wheel");
pip("--force-reinstall", "--no-deps", join(WHEELS, wheel));
run(python, "-m", "mypy.stubtest", "tracefx._tracefx");
run(python, "-m", "mypy", "--strict", "python/tracefx");
run(python, "-m", "pytest", "--quiet");
const megabytes = (statSync(join(WHEELS, wheel)).size / 1e6).toFixed(1);
report("done", "python", `${wheel}, ${megabytes} MB, in ${elapsed(start)}`);
