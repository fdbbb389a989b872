/** The page that `npx tracefx explore` serves: what it has, and that it has nothing else. */
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { expect, test } from "vitest";
import { serveExplorer } from "../../src/cli/explore.ts";
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
  expect((await ask(served.url, "/package/dist/explorer/explorer.js"))[0]).toBe(200);
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
