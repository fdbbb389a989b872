/**
 * Runs the packed package in every host of the table, and says how each went: `npm run hosts [-- NAME…]`.
 *
 * The tarball is installed once, beside the tools of the hosts, from the registry. A host that cannot be installed is a failure, as is one that
 * gives another answer, but for those of {@link MAY_LACK}.
 *
 * @module
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { chromium } from "playwright-core";
import { readSafetensors } from "tracefx";
import { elapsed, report, ROOT } from "../../scripts/progress.mjs";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
import { HOSTS } from "./hosts.mjs";

/** @typedef {import("./hosts.mjs").Host} Host */

const FIXTURE = join(ROOT, "tests/fixtures/programs/digits_cnn");
const TIMEOUT = 240_000;

/** What the line of the program begins with, so that nothing else that a host says is taken for it. */
const MARK = "tracefx-host";

/** The hosts that may be skipped where they cannot be installed, and why. */
const MAY_LACK = new Map([["Electron", "its program lies on GitHub, and is not in the registry"]]);

function npm(/** @type {string} */ cwd, /** @type {string[]} */ ...args) {
  return execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Packs the package and installs it with the tools of these hosts, those left out that cannot be installed. */
function install(/** @type {string} */ folder, /** @type {readonly Host[]} */ hosts) {
  const tarball = npm(join(ROOT, "ts"), "pack", "--silent", "--pack-destination", folder).trim();
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "hosts", private: true, type: "module" }));
  npm(folder, "install", "--prefer-offline", join(folder, tarball));
  // The folder of a project lies beside `node_modules`.
  mkdirSync(join(folder, "host"));
  /** @type {Map<string, string>} */
  const missing = new Map();
  const wanted = new Map(hosts.flatMap((it) => Object.entries(it.packages ?? {})));
  for (const [name, version] of wanted) {
    try {
      npm(folder, "install", "--prefer-offline", "--save-exact", `${name}@${version}`);
    } catch (error) {
      const { stderr = "" } = /** @type {{ stderr?: string }} */ (error);
      const lines = stderr.split("\n").filter((it) => /npm error/.test(it) && !/A complete log/.test(it));
      missing.set(name, lines[0]?.replace("npm error ", "") ?? String(error));
    }
  }
  return missing;
}

/** The model, an image and PyTorch's answer as a module, so that no host has to find files but the package's own. */
function dataModule() {
  const only = (/** @type {string} */ file) => {
    const [tensor] = readSafetensors(readFileSync(join(FIXTURE, file))).tensors.values();
    if (tensor === undefined) throw new Error(`${file} is empty`);
    return tensor;
  };
  const [image, expected] = [only("inputs.safetensors"), only("expected.safetensors")];
  const data = {
    model: readFileSync(join(FIXTURE, "model.pt2")).toString("base64"),
    image: Array.from(image.toFloat32Array()),
    shape: image.shape,
    expected: Array.from(expected.toFloat32Array()),
  };
  return Object.entries(data)
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
    .join("");
}

/** Makes the project of a host and runs it; gives the line of the program. */
async function runHost(
  /** @type {string} */ folder,
  /** @type {Host} */ host,
  /** @type {import("playwright-core").Browser} */ browser,
) {
  const project = join(folder, host.name.replaceAll(/\W+/g, "-").toLowerCase());
  const port = String(await freePort());
  const withPort = (/** @type {string} */ text) => text.replaceAll("$PORT", port);
  const files = {
    ...host.files,
    "program.js": readFileSync(join(ROOT, "tests/hosts", host.program ?? "program.js"), "utf8"),
    "data.js": dataModule(),
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), withPort(text));
  }
  const bin = join(folder, "node_modules/.bin");
  const env = {
    ...process.env,
    PATH: `${bin}${delimiter}${process.env["PATH"]}`,
    CI: "1",
    NO_COLOR: "1",
    NEXT_TELEMETRY_DISABLED: "1",
    ...host.env,
  };
  const options = { cwd: project, env, timeout: TIMEOUT, encoding: /** @type {const} */ ("utf8"), maxBuffer: 2 ** 26 };
  let said = "";
  for (const [program = "", ...args] of host.commands)
    said = execFileSync(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  if (host.page === undefined && host.server === undefined) return lineOf(said);

  const [program = "", ...args] = withPort(host.server ?? "").split(" ");
  const server =
    host.server === undefined
      ? undefined
      : spawn(program, args, { cwd: project, env, stdio: "ignore", detached: true });
  const failed = new Promise((_, reject) => {
    server?.once("error", reject);
    server?.once("exit", (code) => reject(new Error(`${host.server} exited with ${code}`)));
  });
  // Once the server has answered, its end is what stops it.
  failed.catch(() => undefined);
  const files_ = server === undefined ? await serve({ root: folder }) : undefined;
  try {
    const url =
      files_ === undefined ? `http://127.0.0.1:${port}/` : `${files_.url}${project.slice(folder.length + 1)}/`;
    if (server !== undefined) await Promise.race([answered(url), failed]);
    return lineOf(
      host.page === undefined ? await (await fetch(url)).text() : await titleOf(browser, `${url}${host.page}`),
    );
  } finally {
    await files_?.close();
    if (server?.pid !== undefined && server.exitCode === null) process.kill(-server.pid);
  }
}

/** What the program says after its mark, among what a command says. */
function lineOf(/** @type {string} */ said) {
  return new RegExp(`${MARK} ((?:ok|failed) .*)`).exec(said)?.[1] ?? `failed ${said}`;
}

/** The title that a page gives itself. */
async function titleOf(/** @type {import("playwright-core").Browser} */ browser, /** @type {string} */ url) {
  const tab = await browser.newPage();
  /** @type {string[]} */
  const errors = [];
  tab.on("pageerror", (error) => errors.push(String(error)));
  tab.on("requestfailed", (request) => errors.push(request.url()));
  try {
    const response = await tab.goto(url);
    if (response?.ok() !== true) return `failed the server answers ${response?.status()} for ${url}`;
    await tab.waitForFunction((mark) => document.title.startsWith(mark), MARK, { timeout: 60_000 });
    return await tab.title();
  } catch (error) {
    return `failed ${[...errors, String(error)].join("; ")}`;
  } finally {
    await tab.close();
  }
}

/** Waits until something answers. */
async function answered(/** @type {string} */ url) {
  const end = performance.now() + 60_000;
  for (;;) {
    try {
      await fetch(url);
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** A port that nobody listens at. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("a listening server has a port");
  return address.port;
}

function begins(/** @type {Host} */ host, /** @type {string} */ name) {
  return host.name.toLowerCase().startsWith(name.toLowerCase());
}

/** The hosts whose names begin with one of these, or all. */
function chosen(/** @type {readonly string[]} */ names) {
  const unknown = names.filter((name) => !HOSTS.some((it) => begins(it, name)));
  if (unknown.length > 0) {
    throw new Error(`there is no host ${unknown.join(", ")}; there are ${HOSTS.map((it) => it.name).join("; ")}`);
  }
  return names.length === 0 ? HOSTS : HOSTS.filter((it) => names.some((name) => begins(it, name)));
}

async function main() {
  const hosts = chosen(process.argv.slice(2));
  const folder = mkdtempSync(join(tmpdir(), "tracefx-hosts-"));
  const browser = await chromium.launch({ executablePath: chromiumPath() ?? "chromium", args: ["--no-sandbox"] });
  let failures = 0;
  try {
    const missing = install(folder, hosts);
    for (const host of hosts) {
      const lacking = Object.keys(host.packages ?? {}).find((it) => missing.has(it));
      const isIncomplete = host.needs !== undefined && !existsSync(join(folder, "host", host.needs));
      if (lacking !== undefined || isIncomplete) {
        const why = lacking === undefined ? `there is no ${host.needs}` : `${lacking}: ${missing.get(lacking)}`;
        const reason = MAY_LACK.get(host.name);
        if (reason === undefined) failures += 1;
        const state = reason === undefined ? "failed" : "done";
        report(
          state,
          host.name,
          `${reason === undefined ? "" : `skipped, ${reason}: `}it cannot be installed here (${why})`,
        );
        continue;
      }
      const start = performance.now();
      let line;
      try {
        line = await runHost(folder, host, browser);
      } catch (error) {
        const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
        line = `failed ${[stdout, stderr, String(error)].join("\n").trim().slice(0, 4000)}`;
      }
      const isOk = line.startsWith("ok");
      if (!isOk) failures += 1;
      report(isOk ? "done" : "failed", host.name, `${line}${isOk ? `; ${elapsed(start)} in all` : ""}`);
    }
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
  process.exitCode = failures === 0 ? 0 : 1;
}

await main();
