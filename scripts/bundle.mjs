/**
 * Builds `dist/bundle` of `dist`: the same package in a few files, which hosts without a bundler of their own load in a fraction
 * of the time. Each entry point is a file with the name that it has in `dist`, and what several share is in chunks, so that all of
 * them are one package however they are imported. Bundlers take `dist`, of which they drop what is not used.
 *
 * @module
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

/** What is loaded by its place, and is no entry point for users. */
const BY_PLACE = [
  "dist/cli/main.js",
  "dist/plugin/loader.js",
  "dist/worker/serve.js",
  "dist/engine/thread.js",
  "dist/explorer/layoutWorker.js",
];

/** A place beside a file, in the one form that bundlers know. */
const PLACE = /new URL\("(\.[^"]*\.\w+)",\s*import\.meta\.url\)/g;

/** The folder of the package, and that of the engine in it, as files of `dist` name them. */
const BESIDE = /new URL\("\.\.\/\.\.\/(?="|wasm\/)/g;

/** Bundles the package in a folder, which has `dist` and `wasm`. */
export async function bundle(/** @type {string} */ folder) {
  const { exports } = JSON.parse(readFileSync(new URL("../ts/package.json", import.meta.url), "utf8"));
  /** @type {{ readonly default?: string }[]} */
  const targets = Object.values(exports);
  const entries = targets.flatMap((it) => (it.default === undefined ? [] : [it.default.slice("./".length)]));
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [...entries, ...BY_PLACE],
    outbase: "dist",
    outdir: "dist/bundle",
    // Frames of stacks are known by this name: ts/src/base/frames.ts.
    chunkNames: "chunks/tracefx-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "neutral",
    packages: "external",
    target: "es2022",
    // Names stay, so that stacks can be read; those of classes too, which a second class of the same name would else change.
    keepNames: true,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  for (const file of Object.keys(metafile.outputs)) {
    // What lies beside `dist` is one folder further away.
    const text = readFileSync(join(folder, file), "utf8").replaceAll(BESIDE, 'new URL("../../../');
    writeFileSync(join(folder, file), text);
    for (const [, place = ""] of text.matchAll(PLACE)) {
      const target = join(folder, dirname(file), place);
      if (!existsSync(target)) throw new Error(`${file}: ${relative(folder, target)} does not exist`);
    }
  }
}
