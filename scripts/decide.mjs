/**
 * Decides what is run again: the data of a repository in, the stages and tests out. It reads no file and starts nothing.
 *
 * A unit is what has tests of its own: a crate, or a file of TypeScript tests. Its own inputs are its sources and what its tests
 * name; all of its inputs are those and what they depend on. A unit whose own inputs changed is run. One that stands on
 * something that changed is left to `npm test`, unless dependants are asked for: the compilers and the lints have read it by
 * then, and nearly everything stands on the lowest crate.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { posix } from "node:path";

/** @typedef {import("./repository.mjs").Files} Files */
/** @typedef {import("./repository.mjs").Package} Package */
/** @typedef {{ readonly own: string, readonly all: string }} Prints hashes of inputs */
/** @typedef {{ readonly name: string, readonly prints: Prints }} Unit */
/** @typedef {Unit & { readonly separate: readonly string[] }} CrateUnit */
/** @typedef {"run" | "fresh" | "left"} State */
/** @typedef {(path: string) => boolean} Chooser */
/** @typedef {(path: string) => string} Reader gives the text of a file */

/**
 * What is done with each unit.
 *
 * @template {Unit} U
 * @param {readonly U[]} units
 * @param {(name: string) => Prints | undefined} last the inputs of the last success
 * @param {{ dependants?: boolean }} [options]
 * @returns {Record<State, U[]>}
 */
export function decide(units, last, { dependants = false } = {}) {
  /** @type {Record<State, U[]>} */
  const res = { run: [], fresh: [], left: [] };
  for (const unit of units) {
    const before = last(unit.name);
    const { own, all } = unit.prints;
    if (before?.own !== own) res.run.push(unit);
    else if (before.all === all) res.fresh.push(unit);
    else res[dependants ? "run" : "left"].push(unit);
  }
  return res;
}

/**
 * A hash over those files that are taken, and over plain facts such as the version of a compiler.
 *
 * @param {Files} files
 * @param {Chooser} isTaken
 * @param {readonly string[]} [facts]
 */
export function digest(files, isTaken, facts = []) {
  const hash = createHash("sha256");
  for (const fact of facts) hash.update(`${fact}\0`);
  for (const [path, content] of files) if (isTaken(path)) hash.update(`${path}\0${content}\0`);
  return hash.digest("hex");
}

/** What the tests of every crate may read. */
const SHARED_BY_CRATES = /^(Cargo\.(toml|lock)$|\.cargo\/|tests\/(fixtures|golden)\/)/;
/** What a crate gives to those that depend on it. */
const NOT_GIVEN = /^\/(tests|benches|examples)\//;
/** How sources take in files of other folders. */
const INCLUDED = /(?:include_(?:str|bytes)!\(|#\[path = )"([^"]+)"/g;

/**
 * The crates that have tests.
 *
 * @param {Files} files
 * @param {Reader} read
 * @param {readonly Package[]} packages
 * @param {readonly string[]} facts
 * @returns {CrateUnit[]}
 */
export function crateUnits(files, read, packages, facts) {
  const edges = new Map(packages.map((it) => [it.folder, it.dependencies]));
  const data = recorded(files);
  const shared = digest(files, (path) => SHARED_BY_CRATES.test(path));
  return packages.flatMap(({ name, folder, separate }) => {
    const isOwn = (/** @type {string} */ path) => crateOf(path, packages) === folder;
    const sources = [...files.keys()].filter((path) => isOwn(path) && path.endsWith(".rs"));
    const texts = sources.map((path) => /** @type {const} */ ([path, read(path)]));
    if (separate.length === 0 && !texts.some(([, text]) => text.includes("#[test]"))) return [];

    const included = new Set(
      texts.flatMap(([path, text]) =>
        Array.from(text.matchAll(INCLUDED), ([, it = ""]) => posix.join(posix.dirname(path), it)),
      ),
    );
    const named = wordsAmong(texts.map(([, text]) => text).join("\n"), data);
    const isInput = (/** @type {string} */ path) => isOwn(path) || included.has(path) || isRecorded(named, path);
    const below = reached(folder, edges);
    const isBelow = (/** @type {string} */ path) => {
      const crate = crateOf(path, packages);
      return crate !== undefined && below.has(crate) && !NOT_GIVEN.test(path.slice(crate.length));
    };
    const own = digest(files, isInput);
    const all = digest(files, (path) => isInput(path) || isBelow(path), [...facts, shared]);
    return [{ name, separate, prints: { own, all } }];
  });
}

const MODULE = /^(ts|tests|scripts|examples|benches|bindings)\/.*\.m?[jt]s$/;
const TEST = /^(ts\/test|tests\/(?!browser\/)).*\.test\.ts$/;
const SOURCE = /^(ts\/src|bindings)\//;
/** What no test of the package reads, unless it names it. */
const NOT_READ = /^(crates|fuzz|xtask|benches|web)\/|\.(md|rs|py)$/;
/** What sets every test up. */
const SET_UP = ["ts/test/setup.ts", "vitest.config.ts"];
/** What else a test may read, by the word that it has for it. */
const NAMED = /** @type {const} */ ([
  ["README.md", /^README\.md$/],
  ["docs", /^(docs\/|README\.md$)/],
  ["examples", /^(ts\/)?examples\//],
  ["golden", /^tests\/golden\//],
  ["snippets", /^ts\/test\/trace\/snippets\//],
]);

/**
 * The files of tests that vitest runs in Node. The name of a unit is its path.
 *
 * @param {Files} files
 * @param {Reader} read
 * @param {readonly string[]} facts
 * @returns {Unit[]}
 */
export function testUnits(files, read, facts) {
  const texts = new Map([...files.keys()].filter((it) => MODULE.test(it)).map((path) => [path, read(path)]));
  const edges = new Map(Array.from(texts, ([path, text]) => [path, imported(path, text, files)]));
  const data = [...recorded(files), ...NAMED.map(([word]) => word)];
  const shared = digest(files, (path) => SET_UP.includes(path) || !(texts.has(path) || NOT_READ.test(path)));

  return [...texts.keys()]
    .filter((it) => TEST.test(it))
    .map((name) => {
      // The sources that a test imports itself are its own, and of what those import, the folder that is called as its own is.
      const near = reached(name, edges, (path) => !SOURCE.test(path));
      const far = reached(name, edges);
      const folder = /^ts\/test\/([^/]+)\//.exec(name)?.[1] ?? "";
      const written = [...near].filter((path) => !SOURCE.test(path));
      const named = wordsAmong(written.map((path) => texts.get(path) ?? "").join("\n"), data);
      const patterns = NAMED.filter(([word]) => named.includes(word)).map(([, pattern]) => pattern);
      const isOwn = (/** @type {string} */ path) =>
        near.has(path) ||
        (isWithin(`ts/src/${folder}`, path) && far.has(path)) ||
        isRecorded(named, path) ||
        patterns.some((it) => it.test(path));
      const own = digest(files, isOwn);
      return { name, prints: { own, all: digest(files, (path) => isOwn(path) || far.has(path), [...facts, shared]) } };
    });
}

/** The folder of the crate that a file belongs to; a crate may lie in the folder of another. */
function crateOf(/** @type {string} */ path, /** @type {readonly Package[]} */ packages) {
  const around = packages.map((it) => it.folder).filter((it) => isWithin(it, path));
  return around.toSorted((a, b) => b.length - a.length)[0];
}

/** The folders of recorded data. */
function recorded(/** @type {Files} */ files) {
  const paths = [...files.keys()].filter((it) => isWithin("tests/fixtures", it));
  return [...new Set(paths.map((it) => it.split("/")[2] ?? ""))];
}

function isRecorded(/** @type {readonly string[]} */ folders, /** @type {string} */ path) {
  return isWithin("tests/fixtures", path) && folders.includes(path.split("/")[2] ?? "");
}

function isWithin(/** @type {string} */ folder, /** @type {string} */ path) {
  return path.startsWith(`${folder}/`);
}

/** Those of the words that a text names: as a part of a path, or as a text of its own. */
function wordsAmong(/** @type {string} */ text, /** @type {readonly string[]} */ words) {
  const named = new Set(Array.from(text.matchAll(/(?<=["'`/])[\w.-]+(?=["'`/])/g), ([word]) => word));
  return words.filter((it) => named.has(it));
}

/**
 * Everything that is reached from a place, itself among it.
 *
 * @param {string} from
 * @param {ReadonlyMap<string, readonly string[]>} edges
 * @param {Chooser} [goesOn] whether what a place leads to is followed
 * @returns {Set<string>}
 */
function reached(from, edges, goesOn = () => true) {
  const res = new Set([from]);
  for (const place of res) {
    if (place !== from && !goesOn(place)) continue;
    for (const next of edges.get(place) ?? []) res.add(next);
  }
  return res;
}

/** How modules import others when they run. Types are no imports. */
const IMPORTS = [
  /^\s*(?:import|export)\s+(?!type\b)[^"'`;]*?\bfrom\s*"([^"]+)"/gm,
  /^\s*import\s*"([^"]+)"/gm,
  /\bimport\(\s*"([^"]+)"/g,
];

/** The files of the repository that a module imports when it runs. */
function imported(/** @type {string} */ from, /** @type {string} */ text, /** @type {Files} */ files) {
  const written = IMPORTS.flatMap((it) => Array.from(text.matchAll(it), ([, path = ""]) => path));
  return written.flatMap((it) => {
    if (it === "tracefx") return ["ts/src/index.ts"];
    const path = it.startsWith(".") ? posix.join(posix.dirname(from), it) : "";
    return files.has(path) ? [path] : [];
  });
}
