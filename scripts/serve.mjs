/**
 * A small server of static files for development and for the browser tests.
 *
 *     node scripts/serve.mjs [--port 8080]
 *
 * It serves the repository on this machine only, with the headers that make a page cross-origin isolated.
 *
 * @module
 */
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { ROOT } from "./progress.mjs";

/** @type {Readonly<Record<string, string>>} */
const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

const HEADERS = {
  "cache-control": "no-store",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-opener-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

/**
 * Serves a folder; port 0 takes a free one.
 *
 * @param {{ root?: string, port?: number }} [options]
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function serve({ root = ROOT, port = 0 } = {}) {
  const base = await realpath(root);
  const server = createServer(async (request, response) => {
    const file =
      request.method === "GET" || request.method === "HEAD" ? await find(base, request.url ?? "/") : undefined;
    if (file === undefined) {
      response.writeHead(404, { ...HEADERS, "content-type": "text/plain; charset=utf-8" }).end("not found\n");
      return;
    }
    const type = TYPES[extname(file.path)] ?? "application/octet-stream";
    const range = rangeOf(request.headers.range, file.size);
    const [start, end] = range ?? [0, file.size];
    const part = range === undefined ? {} : { "content-range": `bytes ${start}-${end - 1}/${file.size}` };
    const headers = { ...HEADERS, ...part, "content-type": type, "content-length": end - start, etag: file.tag };
    response.writeHead(range === undefined ? 200 : 206, headers);
    if (request.method === "HEAD" || start === end) response.end();
    else
      createReadStream(file.path, { start, end: end - 1 })
        .on("error", () => response.destroy())
        .pipe(response);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(undefined));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a listening server has a port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    close: () =>
      new Promise((resolve, reject) => {
        server.closeAllConnections();
        server.close((error) => (error ? reject(error) : resolve()));
      }),
  };
}

/** The file that a request names; a folder stands for its index. Nothing outside the base is found, nor what is hidden. */
async function find(/** @type {string} */ base, /** @type {string} */ url) {
  try {
    const name = decodeURIComponent(new URL(url, "http://localhost").pathname);
    if (name.split("/").some((part) => part.startsWith("."))) return undefined;
    const path = await realpath(join(base, name.endsWith("/") ? `${name}index.html` : name));
    if (!path.startsWith(base + sep)) return undefined;
    const info = await stat(path);
    return info.isFile() ? { path, size: info.size, tag: `"${info.size}-${info.mtimeMs}"` } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The bytes that a header asks for, where it asks for one part that is there.
 *
 * @param {string | undefined} header
 * @param {number} size
 * @returns {[number, number] | undefined}
 */
function rangeOf(header, size) {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return start < end ? [start, end] : undefined;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({ options: { port: { type: "string", default: "8080" } } });
  const { url } = await serve({ port: Number(values.port) });
  console.log(`serving the repository at ${url}; the page is at ${url}web/`);
}
