/**
 * Files of a server that gives ranges of them.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { piecesOf, type RangeSource } from "./source.ts";

/** How much of the end of a file comes with the answer that tells how long it is. The engine asks for as much first. */
export const RANGES_OF_TAIL = 1 << 16;
/** How many ranges come at once. */
const PARALLEL = 4;

/** Which part of a file an answer holds. */
interface Part {
  readonly start: number;
  readonly end: number;
  readonly size: number;
}

/** The part that an answer holds, if it is the end of the file as it is, of which ranges can be asked. */
export function endOf(response: Response): Part | undefined {
  const part = partOf(response);
  if (part === undefined || part.end !== part.size || part.end - part.start > RANGES_OF_TAIL) return undefined;
  return part;
}

function partOf(response: Response): Part | undefined {
  // A range of a compressed file tells nothing of where bytes lie.
  const encoding = response.headers.get("content-encoding") ?? "identity";
  if (response.status !== 206 || encoding !== "identity") return undefined;
  const found = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(response.headers.get("content-range") ?? "");
  if (found === null) return undefined;
  const [start = 0, last = 0, size = 0] = found.slice(1).map(Number);
  return start <= last && last < size ? { start, end: last + 1, size } : undefined;
}

/**
 * A file of a server. Each answer is checked to be of the same file; `If-Range` would say so too, but a browser asks a server
 * of another origin for leave to send it, which many do not give.
 */
export class HttpRanges implements RangeSource {
  readonly parallel = PARALLEL;
  readonly size: number;
  readonly #source: string | URL;
  readonly #tail: Uint8Array;
  readonly #version: string | null;
  readonly #count: (bytes: number) => void;

  private constructor(
    source: string | URL,
    response: Response,
    size: number,
    tail: Uint8Array,
    count: (bytes: number) => void,
  ) {
    this.#source = source;
    this.size = size;
    this.#tail = tail;
    this.#count = count;
    this.#version = versionOf(response);
  }

  /** A file of which this answer holds the end. */
  static async of(
    source: string | URL,
    response: Response,
    part: Part,
    count: (bytes: number) => void,
    signal: AbortSignal | undefined,
  ): Promise<HttpRanges> {
    const tail = new Uint8Array(part.end - part.start);
    let read = 0;
    for await (const piece of exactly(response, part, signal)) {
      tail.set(piece, read);
      read += piece.length;
    }
    return new HttpRanges(source, response, part.size, tail, count);
  }

  async *read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const tailStart = this.size - this.#tail.length;
    if (start >= tailStart) {
      this.#count(end - start);
      yield this.#tail.subarray(start - tailStart, end - tailStart);
      return;
    }
    const headers = { Range: `bytes=${start}-${end - 1}` };
    let response: Response;
    try {
      response = await fetch(this.#source, { headers, signal });
    } catch (cause) {
      signal.throwIfAborted();
      throw fxError("Io", `cannot fetch a part of ${String(this.#source)}`, { cause, help: "try again" });
    }
    const part = this.#checked(response, start, end);
    if (part === undefined) {
      await response.body?.cancel().catch(() => {});
      throw this.#refusal(response);
    }
    for await (const piece of exactly(response, part, signal)) {
      this.#count(piece.length);
      yield piece;
    }
  }

  /** The part that an answer holds, if it is the one that was asked for, of the same file. */
  #checked(response: Response, start: number, end: number): Part | undefined {
    const part = partOf(response);
    const isAsked = part?.start === start && part.end === end && part.size === this.size;
    return isAsked && versionOf(response) === this.#version ? part : undefined;
  }

  #refusal(response: Response): Error {
    const url = String(this.#source);
    if (response.status === 200 || response.status === 206 || response.status === 416) {
      return fxError("Io", `${url} changed while it was read`, { help: "load it again" });
    }
    return fxError("Io", `the server answered ${response.status} for a part of ${url}`, { help: "try again" });
  }
}

/** What tells a file from the one that was at its URL before, where the server says it. */
function versionOf({ headers }: Response): string | null {
  return headers.get("etag") ?? headers.get("last-modified");
}

/** The pieces of an answer, which must be as many bytes as it says. */
async function* exactly(
  response: Response,
  { start, end }: Part,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let read = 0;
  for await (const piece of piecesOf(response.body ?? new Blob([]).stream(), signal)) {
    read += piece.length;
    if (read > end - start) break;
    yield piece;
  }
  if (read === end - start) return;
  const what = `the server sent ${read > end - start ? "more" : read} of ${end - start} bytes`;
  throw fxError("Io", what, { help: "try again" });
}
