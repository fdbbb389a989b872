/**
 * `npx tracefx explore`: a page with the explorer, which this machine alone can open.
 *
 * It has the files of the package and the programs that were named, and nothing else of the disk.
 *
 * @module
 */
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { basename, extname, join, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { fxError } from "../base/errors.ts";

/** A page that is served. */
export interface ServedExplorer extends AsyncDisposable {
  readonly url: string;
}

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
/** The folders of the package that the page loads. */
const FOLDERS = ["dist", "wasm"];
/** The explorer in a few files, so that a page is there after a few requests. */
const EXPLORER = "/package/dist/bundle/explorer/explorer.js";

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".wasm": "application/wasm",
};

/** Nothing of another site, and nothing to another site. */
const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": POLICY,
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

const CSS = `:root { color-scheme: light dark; }
html, body, main { height: 100%; margin: 0; }
tracefx-graph { height: 100%; border: none; }
`;

/** Serves a page that shows one program, or how two differ. Port 0 is a free one. */
export async function serveExplorer(files: readonly string[], port: number): Promise<ServedExplorer> {
  for (const file of files) await checkFile(file);
  const server = createServer((request, response) => {
    const own = server.address();
    const isOwn = own !== null && typeof own === "object" && isOwnHost(request.headers.host ?? "", own.port);
    const url = `http://localhost${request.url ?? "/"}`;
    const isRight = isOwn && request.method === "GET" && URL.canParse(url);
    void answer(isRight ? new URL(url).pathname : "", files, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(
        fxError("Io", `the page cannot be served at port ${port}: ${error.message}`, {
          help: "--port N, or without a port a free one",
        }),
      );
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a listening server has a port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether a request is to this machine by its own name. A site whose name leads to this machine has another host, and is told nothing. */
export function isOwnHost(host: string, port: number): boolean {
  const names = ["127.0.0.1", "localhost"];
  // Browsers leave out the port of HTTP.
  return names.some((name) => host === `${name}:${port}` || (port === 80 && host === name));
}

async function checkFile(file: string): Promise<void> {
  const info = await stat(file).catch((error: Error) => error);
  if (info instanceof Error) throw fxError("Io", `could not open ${file}: ${info.message}`, { help: "check the path" });
  if (!info.isFile()) throw fxError("Io", `${file} is no file`, { help: "check the path" });
}

async function answer(pathname: string, files: readonly string[], response: ServerResponse): Promise<void> {
  const program = files[Number(/^\/programs\/(\d+)$/.exec(pathname)?.[1])];
  if (pathname === "/") respond(response, "text/html; charset=utf-8", page(files));
  else if (pathname === "/page.css") respond(response, "text/css; charset=utf-8", CSS);
  else if (program !== undefined) await respondFile(response, program);
  else {
    const file = await fileOfPackage(pathname);
    if (file !== undefined) await respondFile(response, file);
    else response.writeHead(404, { ...HEADERS, "content-type": "text/plain" }).end("not found\n");
  }
}

function respond(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, { ...HEADERS, "content-type": type }).end(text);
}

async function respondFile(response: ServerResponse, file: string): Promise<void> {
  const info = await stat(file).catch(() => undefined);
  if (info === undefined) {
    response.writeHead(404, HEADERS).end();
    return;
  }
  const type = TYPES[extname(file)] ?? "application/octet-stream";
  response.writeHead(200, { ...HEADERS, "content-type": type, "content-length": info.size });
  // A reader that goes away closes the file, and a file that cannot be read ends the answer: there is nobody to tell.
  await pipeline(createReadStream(file), response).catch(() => undefined);
}

/** A file of the package by its address; undefined for what is not in the folders that the page loads. */
async function fileOfPackage(pathname: string): Promise<string | undefined> {
  const [, first = "", folder = ""] = pathname.split("/");
  if (first !== "package" || !FOLDERS.includes(folder)) return undefined;
  try {
    const root = await realpath(join(PACKAGE, folder));
    const file = await realpath(join(PACKAGE, decodeURIComponent(pathname.slice("/package/".length))));
    return file.startsWith(root + sep) && (await stat(file)).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

function page(files: readonly string[]): string {
  const names = files.map((it) => escaped(basename(it)));
  const compare = files.length > 1 ? ' compare="/programs/1"' : "";
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${names.join(" and ")} – tracefx</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/page.css">
    <script type="module" src="${EXPLORER}"></script>
  </head>
  <body>
    <main><tracefx-graph src="/programs/0"${compare} permalink></tracefx-graph></main>
  </body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
