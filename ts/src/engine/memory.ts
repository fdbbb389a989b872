/**
 * The memory of a module of WebAssembly, which the host gives it: its own, or shared among threads.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";
import type { Change } from "./module.ts";

/** The bit of a memory's limits that says that it is shared. */
const SHARED = 2;
/** The number of the section of imports. */
const IMPORTS = 2;

/** Has a module or a part of one import shared memory where it imports memory that is not, by one bit of it. */
export function shareMemory(module: Uint8Array): void {
  let at = 8;
  const byte = (): number => module[at++] ?? 0;
  const number = (): number => {
    let value = 0;
    for (let factor = 1; at < module.length; factor *= 128) {
      const next = byte();
      value += (next % 128) * factor;
      if (next < 128) break;
    }
    return value;
  };
  const name = (): void => {
    const length = number();
    at += length;
  };
  /** What stands of an import behind its kind: the type of a function, a table, a global or a tag. */
  const skip = (kind: number): void => {
    if (kind === 0) {
      number();
    } else if (kind === 1) {
      at += 1;
      const hasMaximum = byte() % 2 === 1;
      number();
      if (hasMaximum) number();
    } else if (kind === 3) {
      at += 2;
    } else {
      at += 1;
      number();
    }
  };
  while (at < module.length) {
    const section = byte();
    const end = number() + at;
    for (let left = section === IMPORTS ? number() : 0; left > 0; left--) {
      name();
      name();
      const kind = byte();
      if (kind === 2) {
        module[at] = (module[at] ?? 0) | SHARED;
        return;
      }
      skip(kind);
    }
    at = end;
  }
  throw fxError("Io", "the WebAssembly module imports no memory", {
    help: "take all .wasm files from one release of the package",
  });
}

/** So many bytes of a module have its imports among them, before that of the memory is known. */
const BEGINNING = 1 << 16;

/** Has modules import shared memory. */
export const sharedMemory: Change = {
  bytes: shareMemory,

  response({ body, headers, status }) {
    let beginning: Bytes | undefined = new Uint8Array();
    const begin = (controller: TransformStreamDefaultController<Bytes>): void => {
      if (beginning === undefined) return;
      shareMemory(beginning);
      controller.enqueue(beginning);
      beginning = undefined;
    };
    const changing = new TransformStream<Bytes, Bytes>({
      transform(chunk, controller) {
        if (beginning === undefined) {
          controller.enqueue(chunk);
          return;
        }
        const longer = new Uint8Array(beginning.length + chunk.length);
        longer.set(beginning);
        longer.set(chunk, beginning.length);
        beginning = longer;
        if (longer.length >= BEGINNING) begin(controller);
      },
      flush: begin,
    });
    return new Response(body?.pipeThrough(changing), { headers, status });
  },
};
