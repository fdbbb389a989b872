/**
 * Puts the parser of sources into the built package, so that a page can load it without a bundler or an import map: a
 * browser does not know what `acorn` is.
 *
 * @module
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { ROOT } from "./progress.mjs";

const DIST = join(ROOT, "ts/dist");
const acorn = dirname(createRequire(join(ROOT, "ts/package.json")).resolve("acorn/package.json"));

mkdirSync(join(DIST, "vendor"), { recursive: true });
copyFileSync(join(acorn, "dist/acorn.mjs"), join(DIST, "vendor/acorn.mjs"));
copyFileSync(join(acorn, "LICENSE"), join(DIST, "vendor/acorn.LICENSE"));

const importer = join(DIST, "trace/analysis/parse.js");
const source = readFileSync(importer, "utf8");
const bundled = source.replace('from "acorn"', 'from "../../vendor/acorn.mjs"');
if (bundled === source) throw new Error(`${importer} does not import acorn`);
writeFileSync(importer, bundled);
