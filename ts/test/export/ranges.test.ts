/** Programs that are read by ranges: from servers of several kinds, files and Blobs. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { exportProgram, init, load, nn, save, type Tensor, torch } from "../../src/index.ts";

class Net extends nn.Module {
  wide = new nn.Linear(700, 700);
  narrow = new nn.Linear(700, 3);
  override forward(x: Tensor): Tensor {
    return this.narrow.forward(this.wide.forward(x).relu());
  }
}

await init();
torch.manualSeed(0);
const FILE = save(exportProgram(new Net(), [torch.randn(1, 700)]));
const SHA256 = createHash("sha256").update(FILE).digest("hex");
/** The largest entry: 700 times 700 floats, with its header. */
const LARGEST = 700 * 700 * 4 + 1000;
const DIR = mkdtempSync(join(tmpdir(), "tracefx-ranges-"));

type Answer = (request: IncomingMessage, response: ServerResponse, range: [number, number] | undefined) => void;

let server: Server;
let url: string;
let answer: Answer;
let asked: [number, number][] = [];
let open_ = 0;
let mostOpen = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    const [, start, end] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    let range: [number, number] | undefined;
    if (start !== undefined && end !== undefined) {
      range = start === "" ? [Math.max(0, FILE.length - Number(end)), FILE.length] : [Number(start), Number(end) + 1];
      asked.push(range);
    }
    mostOpen = Math.max(mostOpen, ++open_);
    response.on("close", () => open_--);
    answer(request, response, range);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/model.pt2`;
});

afterEach(() => {
  asked = [];
  mostOpen = 0;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(DIR, { recursive: true });
});

const TAG = { etag: '"one"' };

/** Sends a range of a file as servers do. */
function part(response: ServerResponse, [start, end]: [number, number], headers: Record<string, string> = TAG): void {
  const range = `bytes ${start}-${end - 1}/${FILE.length}`;
  response.writeHead(206, { "content-range": range, "content-length": end - start, ...headers });
  response.end(FILE.subarray(start, end));
}

function whole(response: ServerResponse): void {
  response.writeHead(200, { "content-length": FILE.length, etag: '"one"' });
  response.end(FILE);
}

const honest: Answer = (_, response, range) => (range === undefined ? whole(response) : part(response, range));

async function expectNumbers(program: Awaited<ReturnType<typeof load>>): Promise<void> {
  using model = program.module();
  using expected = (await load(FILE)).module();
  const x = torch.ones(1, 700);
  expect((model(x) as Tensor).tolist()).toEqual((expected(x) as Tensor).tolist());
}

describe("a server with ranges", () => {
  test("is asked for each byte once, for no more than an entry at a time", async () => {
    answer = honest;
    const told: [number, number | undefined][] = [];
    await expectNumbers(await load(url, { progress: (read, total) => told.push([read, total]) }));
    const inOrder = asked.toSorted(([a], [b]) => a - b);
    expect(inOrder[0]?.[0]).toBe(0);
    expect(inOrder.at(-1)?.[1]).toBe(FILE.length);
    for (const [at, [start]] of inOrder.slice(1).entries()) expect(start).toBe(inOrder[at]?.[1]);
    expect(Math.max(...asked.map(([start, end]) => end - start))).toBeLessThan(LARGEST);
    expect(told.at(-1)).toEqual([FILE.length, FILE.length]);
    expect(told.map(([read]) => read)).toEqual(told.map(([read]) => read).toSorted((a, b) => a - b));
    expect(mostOpen).toBeLessThanOrEqual(4);
  });

  test("with a hash is asked in the order of the file, one range at a time", async () => {
    answer = honest;
    await expectNumbers(await load(url, { sha256: SHA256 }));
    const rest = asked.slice(1).map(([start]) => start);
    expect(rest).toEqual(rest.toSorted((a, b) => a - b));
    await expect(load(url, { sha256: "0".repeat(64) })).rejects.toThrow(`has the SHA-256 ${SHA256}`);
    expect(mostOpen).toBe(1);
  });

  test("that has another file midway is refused", async () => {
    // By an answer that is no part; by another tag; by none; by another length.
    for (const change of [
      (response: ServerResponse) => whole(response),
      (response: ServerResponse, range: [number, number]) => part(response, range, { etag: '"two"' }),
      (response: ServerResponse, range: [number, number]) => part(response, range, {}),
      (response: ServerResponse, [start, end]: [number, number]) =>
        part(response, [start, end], { ...TAG, "content-range": `bytes ${start}-${end - 1}/${FILE.length + 1}` }),
      (response: ServerResponse) => response.writeHead(416).end(),
    ]) {
      answer = (request, response, range) => {
        if (range === undefined) return whole(response);
        if (range[1] === FILE.length) return part(response, range);
        expect(request.headers["if-range"]).toBeUndefined();
        change(response, range);
      };
      await expect(load(url)).rejects.toThrow(`${url} changed while it was read`);
    }
  });

  test("that has another file midway is refused by its date where it has no tags", async () => {
    const dates = ["Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"];
    const at = (day: number): Record<string, string> => ({ "last-modified": dates[day] ?? "" });
    for (const later of [0, 1]) {
      answer = (_, response, range) => {
        if (range !== undefined) part(response, range, at(range[1] === FILE.length ? 0 : later));
      };
      if (later === 0) await expectNumbers(await load(url));
      else await expect(load(url)).rejects.toThrow(`${url} changed while it was read`);
    }
  });

  test("that fails midway is named with its answer", async () => {
    answer = (_, response, range) => {
      if (range?.[1] === FILE.length) return part(response, range);
      response.writeHead(503).end("busy");
    };
    await expect(load(url)).rejects.toThrow(`the server answered 503 for a part of ${url}`);
  });

  test("that cuts an answer off is refused", async () => {
    answer = (_, response, range) => {
      if (range === undefined || range[1] === FILE.length) return honest(_, response, range);
      const [start, end] = range;
      response.writeHead(206, { "content-range": `bytes ${start}-${end - 1}/${FILE.length}`, etag: '"one"' });
      response.end(FILE.subarray(start, end - 1));
    };
    await expect(load(url)).rejects.toThrow(/the server sent \d+ of \d+ bytes/);
    answer = (_, response, range) => {
      if (range === undefined || range[1] === FILE.length) return honest(_, response, range);
      response.writeHead(206, { "content-range": `bytes ${range[0]}-${range[1] - 1}/${FILE.length}`, etag: '"one"' });
      response.write(FILE.subarray(range[0], range[0] + 10), () => response.destroy());
    };
    await expect(load(url)).rejects.toThrow("the bytes stopped coming");
  });

  test("is left by a signal while its end comes", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    answer = (_, response, range) => {
      if (range === undefined) return;
      const [start, end] = range;
      response.writeHead(206, { ...TAG, "content-range": `bytes ${start}-${end - 1}/${FILE.length}` });
      response.write(FILE.subarray(start, start + 10), () => setTimeout(() => controller.abort(reason), 20));
    };
    await expect(load(url, { signal: controller.signal })).rejects.toBe(reason);
  });

  test("is left at once by a signal", async () => {
    answer = (_, response, range) => {
      if (range?.[1] === FILE.length) return part(response, range);
      // Never answers the rest.
    };
    const controller = new AbortController();
    const loading = load(url, { signal: controller.signal });
    const whenAsked = new Promise<void>((done) => server.once("request", () => server.once("request", () => done())));
    await whenAsked;
    controller.abort(new Error("enough"));
    await expect(loading).rejects.toThrow("enough");
  });
});

describe("a server without ranges", () => {
  test("that ignores them, compresses parts, or does not say which part it sends, sends the file as a whole", async () => {
    const answers: Answer[] = [
      (_, response) => whole(response),
      (_, response, range) =>
        range === undefined ? whole(response) : part(response, range, { "content-encoding": "gzip" }),
      (_, response, range) =>
        range === undefined ? whole(response) : void response.writeHead(206).end(FILE.subarray(...range)),
      (_, response, range) => (range === undefined ? whole(response) : void response.writeHead(416).end()),
      (_, response, range) => (range === undefined ? whole(response) : response.destroy()),
    ];
    for (const each of answers) {
      answer = each;
      const told: number[] = [];
      await expectNumbers(await load(url, { sha256: SHA256, progress: (read) => told.push(read) }));
      expect(told.at(-1)).toBe(FILE.length);
    }
  });

  test("that has no such file is named", async () => {
    answer = (_, response) => response.writeHead(404).end();
    await expect(load(url)).rejects.toThrow(`the server answered 404 for ${url}`);
  });
});

describe("files", () => {
  test("open files and Blobs are read in parts", async () => {
    const path = join(DIR, "model.pt2");
    writeFileSync(path, FILE);
    const file = await open(path);
    const reads: number[] = [];
    const counting = {
      stat: () => file.stat(),
      read: (buffer: Uint8Array, offset: number, length: number, position: number) => {
        reads.push(length);
        return file.read(buffer, offset, length, position);
      },
    };
    await expectNumbers(await load(counting));
    await expectNumbers(await load(file));
    await file.close();
    expect(reads.reduce((sum, it) => sum + it, 0)).toBe(FILE.length);
    expect(Math.max(...reads)).toBeLessThanOrEqual(1 << 20);
    await expectNumbers(await load(new Blob([FILE])));
  });

  test("a file that becomes shorter is refused", async () => {
    const shrinking = {
      stat: async () => ({ size: FILE.length }),
      read: async (buffer: Uint8Array, offset: number, length: number, position: number) => {
        if (position > 0 && position < FILE.length - (1 << 16)) return { bytesRead: 0 };
        buffer.set(FILE.subarray(position, position + length), offset);
        return { bytesRead: length };
      },
    };
    await expect(load(shrinking)).rejects.toThrow("the file became shorter while it was read");
  });
});
