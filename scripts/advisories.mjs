/**
 * Asks whether advisories are known of what the project depends on, where the machine can: `npm audit` asks the registry of
 * npm, `cargo deny` reads RustSec's database, a git repository, and holds `deny.toml`.
 *
 *     node scripts/advisories.mjs
 *
 * What cannot be asked is told of by a line that begins with `skipped:`; it is no failure, and no answer either.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { ROOT } from "./progress.mjs";

let failed = false;

function run(/** @type {string} */ command, /** @type {string[]} */ ...args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: ROOT, encoding: "utf8", timeout: 120_000 });
  return { status: error === undefined ? status : null, stdout: stdout ?? "", stderr: stderr ?? "" };
}

function passed(/** @type {string} */ what) {
  console.log(`checked: ${what}`);
}

function refused(/** @type {string} */ what, /** @type {string} */ log) {
  console.log(`failed: ${what}\n${log}`);
  failed = true;
}

function skipped(/** @type {string} */ what, /** @type {string} */ why) {
  console.log(`skipped: ${what}: ${why}`);
}

/** The first object of JSON in a text; nothing where there is none. */
function json(/** @type {string} */ text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function checkNpm() {
  const what = "advisories of npm packages";
  const { stdout } = run("npm", "audit", "--json");
  const answer = json(stdout);
  if (answer.metadata?.vulnerabilities === undefined) {
    const status = answer.statusCode === undefined ? "nothing" : `status ${answer.statusCode}`;
    skipped(what, `the registry answers ${status}`);
    return;
  }
  if (answer.metadata.vulnerabilities.total === 0) passed(what);
  else refused(what, JSON.stringify(answer.vulnerabilities, null, 2));
}

function checkCargo() {
  if (run("cargo", "deny", "--version").status !== 0) {
    skipped("licences, sources and advisories of crates", "cargo-deny is not installed");
    return;
  }
  const rules = run("cargo", "deny", "check", "licenses", "bans", "sources");
  if (rules.status === 0) passed("licences, bans and sources of crates");
  else refused("licences, bans and sources of crates", rules.stderr);
  const what = "advisories of crates";
  const advisories = run("cargo", "deny", "check", "advisories");
  if (advisories.status === 0) passed(what);
  else if (/failed to (fetch|open|load).*advisory database/is.test(advisories.stderr)) {
    skipped(what, "no advisory database");
  } else if (advisories.status === null) skipped(what, "the advisory database does not answer");
  else refused(what, advisories.stderr);
}

checkNpm();
checkCargo();
process.exitCode = failed ? 1 : 0;
