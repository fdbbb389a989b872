/**
 * What PyTorch answers of the rest of torch.fx.experimental and torch.export, as `tests/oracle/gen_experimental.py` records it.
 *
 * @module
 */
import { readFileSync } from "node:fs";

const FILE = new URL("../../tests/fixtures/fx/experimental.json", import.meta.url);

const RECORDED = JSON.parse(readFileSync(FILE, "utf8")) as Readonly<Record<string, readonly string[]>>;

/** The recorded lines of a case. */
export function experimental(name: string): readonly string[] {
  const lines = RECORDED[name];
  if (lines === undefined) throw new Error(`nothing is recorded of ${name}`);
  return lines;
}
