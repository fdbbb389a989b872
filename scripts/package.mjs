/**
 * Builds `ts/dist`: the package's own files, the tables printed from Rust and the parser of sources; and `ts/dist/bundle` of it.
 *
 * tsc emits below `.cache/package` what lies in `ts/src` and `bindings`, in the folders of the repository. The package has
 * `ts/src` at the top and `bindings` in it, so the relative specifiers between the two are rewritten here, once, and a
 * program needs neither a bundler nor an import map.
 *
 *     node scripts/package.mjs [FOLDER]
 *
 * Tests build it into another folder than `ts`, which has `wasm` already.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve, sep } from "node:path";
import { bundle } from "./bundle.mjs";
import { ROOT } from "./progress.mjs";

const PACKAGE = resolve(process.argv[2] ?? join(ROOT, "ts"));
const DIST = join(PACKAGE, "dist");
const EMITTED = process.argv[2] === undefined ? join(ROOT, ".cache/package") : join(PACKAGE, ".emitted");

/** A relative specifier of an import or an export; the files are tsc's, which writes all of them alike. */
const SPECIFIER = /(?<=\bfrom |\bimport |\bimport\()"(\.[^"]*)"/g;
const COMMENT = /^\s*(?:\*|\/\/|\/\*)/;

/** Where a path below the root of what tsc emitted belongs in the package, relative to it. */
function placed(/** @type {string} */ path) {
  const name = relative(EMITTED, path).split(sep).join("/");
  if (name.startsWith("ts/src/")) return name.replace("ts/src", "dist");
  if (name.startsWith("bindings/")) return `dist/${name}`;
  if (name.startsWith("ts/wasm/")) return name.slice("ts/".length);
  throw new Error(`${name} lies neither in ts/src nor in bindings nor in ts/wasm`);
}

/** The text with what `rewrite` says for each relative specifier outside of comments. */
function withSpecifiers(/** @type {string} */ text, /** @type {(specifier: string) => string} */ rewrite) {
  const lines = text
    .split("\n")
    .map((line) =>
      COMMENT.test(line) ? line : line.replaceAll(SPECIFIER, (_, written) => JSON.stringify(rewrite(written))),
    );
  return lines.join("\n");
}

/** Writes the emitted files to where they belong, and throws where one of them imports what is not in the package. */
function place() {
  /** @type {string[]} */
  const broken = [];
  const files = readdirSync(EMITTED, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  const known = new Set(paths.map(placed));
  for (const path of paths) {
    const name = placed(path);
    const text = withSpecifiers(readFileSync(path, "utf8"), (written) => {
      const target = placed(join(dirname(path), written));
      // A declaration names the source, whose own declaration lies beside it.
      const file = name.endsWith(".d.ts") ? target.replace(/(?<!\.d)\.ts$/, ".d.ts") : target;
      if (!known.has(file) && !existsSync(join(PACKAGE, file))) broken.push(`${name}: ${file} does not exist`);
      const specifier = relative(dirname(name), target).split(sep).join("/");
      return specifier.startsWith(".") ? specifier : `./${specifier}`;
    });
    mkdirSync(dirname(join(PACKAGE, name)), { recursive: true });
    writeFileSync(join(PACKAGE, name), text);
  }
  if (broken.length > 0) throw new Error(broken.join("\n"));
}

/** Puts the parser into the package, so that a page can load it: a browser does not know what `acorn` is. */
function vendorAcorn() {
  const acorn = dirname(createRequire(join(ROOT, "ts/package.json")).resolve("acorn/package.json"));
  mkdirSync(join(DIST, "vendor"), { recursive: true });
  copyFileSync(join(acorn, "dist/acorn.mjs"), join(DIST, "vendor/acorn.mjs"));
  copyFileSync(join(acorn, "LICENSE"), join(DIST, "vendor/acorn.LICENSE"));

  const importer = join(DIST, "trace/analysis/parse.js");
  const source = readFileSync(importer, "utf8");
  const bundled = source.replace('from "acorn"', 'from "../../vendor/acorn.mjs"');
  if (bundled === source) throw new Error(`${importer} does not import acorn`);
  writeFileSync(importer, bundled);
}

/** Lets tsc emit; what it emitted the last time may be of a source that is gone. */
function compile() {
  rmSync(EMITTED, { recursive: true, force: true });
  const typescript = createRequire(import.meta.url).resolve("typescript/package.json");
  const tsc = join(dirname(typescript), "bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", EMITTED], {
    cwd: join(ROOT, "ts"),
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

compile();
rmSync(DIST, { recursive: true, force: true });
place();
vendorAcorn();
await bundle(PACKAGE);
