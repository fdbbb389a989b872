/**
 * Puts into the package what lies in the root of the repository: npm packs only what is below the package's own folder.
 *
 * @module
 */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./progress.mjs";

for (const name of ["LICENSE-APACHE", "LICENSE-MIT", "README.md"])
  copyFileSync(join(ROOT, name), join(ROOT, "ts", name));
