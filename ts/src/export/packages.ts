/**
 * Archives with several programs: `torch.export.pt2_archive`.
 *
 * The engine reads and writes an archive of one program; here are those that hold several, entry by entry.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven, checkOptions, checkText } from "../base/given.ts";
import { ExportedProgram, openProgram } from "./exportedProgram.ts";
import { save } from "./save.ts";
import { zipEntries, zipOf } from "./zip.ts";

/** The version of the layout. */
const VERSION = "0";

/** What PyTorch calls the only program of an archive. */
const MODEL = "model";

/** Whether bytes are an archive of PyTorch's second layout: `is_pt2_package`. */
export function isPt2Package(bytes: Bytes): boolean {
  checkGiven("isPt2Package", bytes instanceof Uint8Array, "the bytes of a file");
  try {
    const reader = new PT2ArchiveReader(bytes);
    return reader.hasRecord("archive_format") && reader.readString("archive_format") === "pt2";
  } catch {
    return false;
  }
}

/**
 * The entries of an archive, by their names in its folder: `PT2ArchiveReader`.
 *
 * @example
 * ```ts
 * const reader = new PT2ArchiveReader(await readFile("models.pt2"));
 * reader.getFileNames().filter((it) => it.startsWith("models/")); // ["models/encoder.json", "models/decoder.json"]
 * ```
 */
export class PT2ArchiveReader {
  readonly #entries = new Map<string, () => Bytes>();

  constructor(bytes: Bytes) {
    checkGiven("PT2ArchiveReader", bytes instanceof Uint8Array, "the bytes of a file");
    for (const [path, read] of zipEntries(bytes)) {
      const at = path.indexOf("/");
      this.#entries.set(path.slice(at + 1), read);
    }
  }

  /** The names of all entries, in their order. */
  getFileNames(): string[] {
    return [...this.#entries.keys()];
  }

  /** Whether there is an entry of this name. */
  hasRecord(name: string): boolean {
    return this.#entries.has(name);
  }

  /** The bytes of an entry, whose checksum is compared. */
  readBytes(name: string): Bytes {
    checkText("readBytes", "the entry", name);
    const read = this.#entries.get(name);
    if (read !== undefined) return read();
    throw fxError("ArchiveMalformed", `the archive has no \`${name}\``, {
      notes: [`it has ${this.getFileNames().join(", ")}`],
    });
  }

  /** The text of an entry. */
  readString(name: string): string {
    return new TextDecoder("utf-8", { fatal: true }).decode(this.readBytes(name));
  }

  /** The version of the layout. */
  archiveVersion(): number {
    return this.hasRecord("archive_version") ? Number(this.readString("archive_version")) : 0;
  }
}

/**
 * Makes an archive entry by entry: `PT2ArchiveWriter`. What every archive has is added when it is closed.
 *
 * @example
 * ```ts
 * const writer = new PT2ArchiveWriter();
 * writer.writeString("extra/note.txt", "hello");
 * const bytes = writer.close();
 * ```
 */
export class PT2ArchiveWriter {
  readonly #root: string;
  readonly #entries = new Map<string, Uint8Array>();

  /** The folder that the entries are in. */
  constructor(root = "archive") {
    checkText("PT2ArchiveWriter", "the folder", root);
    this.#root = root;
  }

  /** Whether there is an entry of this name. */
  hasRecord(name: string): boolean {
    return this.#entries.has(name);
  }

  /** How many entries have names that begin so. */
  countPrefix(prefix: string): number {
    checkText("countPrefix", "the beginning", prefix);
    return [...this.#entries.keys()].filter((it) => it.startsWith(prefix)).length;
  }

  /** Adds an entry. */
  writeBytes(name: string, data: Uint8Array): void {
    checkText("writeBytes", "the entry", name);
    checkGiven("writeBytes", (data as unknown) instanceof Uint8Array, "bytes behind the name");
    if (this.#entries.has(name)) throw fxError("InvalidArgument", `the archive has \`${name}\` already`);
    this.#entries.set(name, data);
  }

  /** Adds an entry with a text. */
  writeString(name: string, text: string): void {
    checkText("writeString", "the text", text);
    this.writeBytes(name, new TextEncoder().encode(text));
  }

  /** The bytes of the archive. */
  close(): Bytes {
    const ends = { archive_format: "pt2", archive_version: VERSION, ".data/version": "6\n", byteorder: "little" };
    for (const [name, text] of Object.entries(ends)) if (!this.hasRecord(name)) this.writeString(name, text);
    return zipOf(new Map(Array.from(this.#entries, ([name, data]) => [`${this.#root}/${name}`, data])));
  }
}

/** How {@link packagePt2} writes. */
export interface PackageOptions {
  /** Texts that are saved beside the programs, by name. */
  readonly extraFiles?: Readonly<Record<string, string>>;
  /** The folder in the archive; PyTorch takes the name of the file. */
  readonly root?: string;
}

/** What an archive holds: `PT2ArchiveContents`. */
export interface PT2ArchiveContents {
  readonly exportedPrograms: ReadonlyMap<string, ExportedProgram>;
  readonly extraFiles: ReadonlyMap<string, string>;
}

/**
 * The bytes of an archive with one or several programs by name: `torch.export.pt2_archive.package_pt2`.
 *
 * @example
 * ```ts
 * await writeFile("models.pt2", packagePt2({ encoder, decoder }));
 * ```
 */
export function packagePt2(
  programs: ExportedProgram | Readonly<Record<string, ExportedProgram>>,
  options: PackageOptions = {},
): Bytes {
  checkOptions("packagePt2", options, ["extraFiles", "root"]);
  checkGiven("packagePt2", typeof programs === "object" && programs !== null, "a program, or programs by name");
  const named = programs instanceof ExportedProgram ? { [MODEL]: programs } : programs;
  checkGiven("packagePt2", Object.keys(named).length > 0, "one program at least");
  const writer = new PT2ArchiveWriter(options.root ?? "archive");
  for (const [name, program] of Object.entries(named)) {
    checkGiven("packagePt2", program instanceof ExportedProgram, "programs by name");
    if (!/^[^/]+$/.test(name)) throw fxError("InvalidOption", `\`${name}\` is no name of a program`);
    addProgram(writer, name, new PT2ArchiveReader(save(program)));
  }
  for (const [name, text] of Object.entries(options.extraFiles ?? {})) writer.writeString(`extra/${name}`, text);
  return writer.close();
}

/** Adds the only program of an archive to another one. Tensors get the numbers that are free there. */
function addProgram(writer: PT2ArchiveWriter, name: string, reader: PT2ArchiveReader): void {
  const first = {
    weight: writer.countPrefix("data/weights/weight_"),
    tensor: writer.countPrefix("data/constants/tensor_"),
    custom_obj: writer.countPrefix("data/constants/custom_obj_"),
  };
  const numbered = (path: string): string =>
    path.replace(
      /\b(weight|tensor|custom_obj)_(\d+)$/,
      (_, kind: keyof typeof first, at: string) => `${kind}_${first[kind] + Number(at)}`,
    );
  for (const path of reader.getFileNames()) {
    if (/^data\/(?:weights|constants)\/(?:weight|tensor|custom_obj)_\d+$/.test(path)) {
      writer.writeBytes(numbered(path), reader.readBytes(path));
    } else if (path.endsWith("_config.json")) {
      const text = reader.readString(path).replaceAll(/(?<="path_name": ")[^"]+/g, numbered);
      writer.writeString(
        path.replace(`/${MODEL}_`, () => `/${name}_`),
        text,
      );
    } else if (path === `models/${MODEL}.json` || path === `data/sample_inputs/${MODEL}.pt`) {
      writer.writeBytes(
        path.replace(`/${MODEL}.`, () => `/${name}.`),
        reader.readBytes(path),
      );
    }
  }
}

/**
 * The programs of an archive by name, and the texts beside them: `torch.export.pt2_archive.load_pt2`.
 *
 * @example
 * ```ts
 * const { exportedPrograms } = loadPt2(await readFile("models.pt2"));
 * const encode = exportedPrograms.get("encoder")?.module();
 * ```
 */
export function loadPt2(bytes: Bytes): PT2ArchiveContents {
  const reader = new PT2ArchiveReader(bytes);
  const names = reader.getFileNames().flatMap((it) => /^models\/([^/]+)\.json$/.exec(it)?.[1] ?? []);
  if (names.length === 0)
    throw fxError("ArchiveWrongKind", "the archive holds no program: there is no `models/*.json`");
  const extra = reader.getFileNames().filter((it) => it.startsWith("extra/"));
  return {
    exportedPrograms: new Map(names.map((name) => [name, openProgram(onlyProgram(reader, name), {})])),
    extraFiles: new Map(extra.map((it) => [it.slice("extra/".length), reader.readString(it)])),
  };
}

/** An archive with one of the programs of another. */
function onlyProgram(reader: PT2ArchiveReader, name: string): Bytes {
  const writer = new PT2ArchiveWriter();
  const own = new Map([
    [`data/weights/${name}_weights_config.json`, `data/weights/${MODEL}_weights_config.json`],
    [`data/constants/${name}_constants_config.json`, `data/constants/${MODEL}_constants_config.json`],
    [`models/${name}.json`, `models/${MODEL}.json`],
    [`data/sample_inputs/${name}.pt`, `data/sample_inputs/${MODEL}.pt`],
  ]);
  for (const [from, to] of own) {
    if (!reader.hasRecord(from)) continue;
    writer.writeBytes(to, reader.readBytes(from));
    if (!from.endsWith("_config.json")) continue;
    const folder = from.slice(0, from.lastIndexOf("/"));
    for (const [, path = ""] of reader.readString(from).matchAll(/"path_name": "([^"]+)"/g)) {
      // Tensors over one storage name it each.
      if (!writer.hasRecord(`${folder}/${path}`))
        writer.writeBytes(`${folder}/${path}`, reader.readBytes(`${folder}/${path}`));
    }
  }
  return writer.close();
}
