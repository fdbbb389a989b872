/** The page that `npx tracefx explore` serves: what it has, and that it has nothing else. */
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { expect, test, vi } from "vitest";
import { isOwnHost, serveExplorer } from "../../src/cli/explore.ts";
import { main } from "../../src/cli/main.ts";
import { fixture, refusal } from "../export/fixtures.ts";

const PROGRAM = fixture("digits_cnn/model.pt2");
const OTHER = fixture("digits_cnn__core/model.pt2");

/** The status and the text of an answer; the path goes out as it is, which `fetch` would tidy. */
async function ask(
  url: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<[status: number, body: Buffer]> {
  const { port } = new URL(url);
  return await new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve([response.statusCode ?? 0, Buffer.concat(parts)]));
    });
    sent.on("error", reject).end();
  });
}

test("the page shows the programs that are named", async () => {
  await using served = await serveExplorer([PROGRAM, OTHER], 0);
  const [status, page] = await ask(served.url, "/");
  expect(status).toBe(200);
  expect(page.toString()).toContain('src="/programs/0" compare="/programs/1"');
  expect((await ask(served.url, "/programs/0"))[1].equals(readFileSync(PROGRAM))).toBe(true);
  expect((await ask(served.url, "/programs/1"))[1].equals(readFileSync(OTHER))).toBe(true);
  expect(page.toString()).toContain('src="/package/dist/bundle/explorer/explorer.js"');
  expect((await ask(served.url, "/package/dist/bundle/explorer/explorer.js"))[0]).toBe(200);
});

test.each([
  "/programs/2",
  "/programs/-1",
  "/package/package.json",
  "/package/dist/../package.json",
  "/package/dist/%2e%2e/package.json",
  "/package/dist/..%2f..%2fpackage.json",
  "/package/wasm/%00",
  "/package/dist",
  "//",
  "/etc/passwd",
])("there is nothing at %s", async (path) => {
  await using served = await serveExplorer([PROGRAM], 0);
  expect((await ask(served.url, path))[0]).toBe(404);
});

test("a site whose name leads to this machine is told nothing", async () => {
  await using served = await serveExplorer([PROGRAM], 0);
  expect((await ask(served.url, "/programs/0", { host: "evil.example" }))[0]).toBe(404);
});

test("a file that is not there is refused before anything is served, and so is a port that is taken", async () => {
  const missing = await refusal(async () => await serveExplorer([`${PROGRAM}.not`], 0));
  expect(missing.code).toBe("FX0703");
  await using served = await serveExplorer([PROGRAM], 0);
  const taken = await refusal(async () => await serveExplorer([PROGRAM], Number(new URL(served.url).port)));
  expect(taken.message).toContain("--port N");
});

test("the port of HTTP may be left out of the host, and no other", () => {
  for (const host of ["localhost", "127.0.0.1", "localhost:80"]) expect(isOwnHost(host, 80)).toBe(true);
  expect(isOwnHost("localhost", 8080)).toBe(false);
  expect(isOwnHost("evil.example", 80)).toBe(false);
});

test("other sites neither frame the page nor read what it has", async () => {
  await using served = await serveExplorer([PROGRAM], 0);
  const { headers } = await fetch(served.url);
  const policy = headers.get("content-security-policy");
  for (const rule of ["frame-ancestors", "base-uri", "form-action"]) expect(policy).toContain(`${rule} 'none'`);
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
});

test.each([
  [["--port", "65536"], "--port needs a number from 0 to 65535"],
  [["--limit", "archive_bytes=1"], "explore has no limits"],
])("%s is refused", async (options, message) => {
  const told = vi.spyOn(console, "error").mockReturnValue(undefined);
  expect(await main(["explore", PROGRAM, ...options])).toBe(2);
  expect(told.mock.lastCall?.[0]).toContain(message);
  told.mockRestore();
});
