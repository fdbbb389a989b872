/**
 * Archives with several programs, and one that PyTorch 2.13 wrote: `tests/oracle/gen_packages.py`.
 */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import {
  init,
  isPt2Package,
  loadPt2,
  packagePt2,
  PT2ArchiveReader,
  PT2ArchiveWriter,
  tensor,
} from "../../src/index.ts";

beforeAll(() => init());

const FOLDER = new URL("../../../tests/fixtures/export/", import.meta.url);
const bytes = (): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(new URL("two.pt2", FOLDER)));
const recorded = JSON.parse(readFileSync(new URL("two.json", FOLDER), "utf8")) as {
  readonly files: readonly string[];
  readonly graphs: Readonly<Record<string, string>>;
  readonly results: Readonly<Record<string, string>>;
  readonly extra_files: Readonly<Record<string, string>>;
};

function expectRecorded(archive: Uint8Array<ArrayBuffer>): void {
  const { exportedPrograms, extraFiles } = loadPt2(archive);
  const x = tensor([[1, 1]], { dtype: "float32" });
  expect(Object.fromEntries(extraFiles)).toEqual(recorded.extra_files);
  const said = (body: (name: string) => string): object =>
    Object.fromEntries([...exportedPrograms.keys()].map((name) => [name, body(name)]));
  expect(said((name) => String(exportedPrograms.get(name)?.graph))).toEqual(recorded.graphs);
  expect(said((name) => String(exportedPrograms.get(name)?.module()(x)))).toEqual(recorded.results);
}

test("programs of PyTorch's archive open by their names", () => {
  expect(isPt2Package(bytes())).toBe(true);
  expect(isPt2Package(new Uint8Array(100))).toBe(false);
  const reader = new PT2ArchiveReader(bytes());
  expect(reader.getFileNames()).toEqual(recorded.files);
  expect(reader.archiveVersion()).toBe(0);
  expectRecorded(bytes());
});

test("programs are packaged as PyTorch packages them", () => {
  const { exportedPrograms, extraFiles } = loadPt2(bytes());
  const options = { root: "two", extraFiles: Object.fromEntries(extraFiles) };
  const packaged = packagePt2(Object.fromEntries(exportedPrograms), options);
  expectRecorded(packaged);
  const [ours, theirs] = [packaged, bytes()].map((it) => new PT2ArchiveReader(it)) as [
    PT2ArchiveReader,
    PT2ArchiveReader,
  ];
  const written = recorded.files.filter((it) => !it.endsWith("serialization_id"));
  expect(ours.getFileNames().toSorted()).toEqual(written.toSorted());
  for (const name of written.filter((it) => !/sample_inputs|^\.data|byteorder/.test(it)))
    expect([...ours.readBytes(name)], name).toEqual([...theirs.readBytes(name)]);
});

test("what is no archive, or was changed, is refused", () => {
  const damaged = bytes();
  const at = new PT2ArchiveReader(damaged).readBytes("data/weights/weight_0").byteOffset;
  damaged[at] = (damaged[at] as number) ^ 1;
  expect(() => loadPt2(damaged)).toThrow("the checksum of `two/data/weights/weight_0` is wrong");
  expect(() => loadPt2(bytes().slice(0, 900))).toThrow("it has no directory");
  const writer = new PT2ArchiveWriter();
  writer.writeString("extra/a", "1");
  expect(() => writer.writeString("extra/a", "2")).toThrow("has `extra/a` already");
  expect(writer.countPrefix("extra/")).toBe(1);
  expect(() => loadPt2(writer.close())).toThrow("holds no program");
});
