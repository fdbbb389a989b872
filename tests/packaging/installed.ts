/**
 * The packed tarball, installed into an empty project: what users get, and not what lies around in the repository.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGE = new URL("../../ts", import.meta.url).pathname;

/** A project that has nothing but the package. */
export interface Project extends Disposable {
  /** The folder of the project. */
  readonly folder: string;
  /** The folder of the package in it. */
  readonly installed: string;
  /** The file that was installed. */
  readonly tarball: string;
}

/** Packs the package and installs it; the project is gone when it is disposed of. */
export function installedProject(): Project {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-"));
  const tarball = join(folder, npm(PACKAGE, "pack", "--silent", "--pack-destination", folder).trim());
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  npm(folder, "install", "--prefer-offline", "--no-audit", "--no-fund", tarball);
  const installed = join(folder, "node_modules/tracefx");
  return { folder, installed, tarball, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

function npm(folder: string, ...args: string[]): string {
  return execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
