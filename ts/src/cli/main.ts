/**
 * `npx tracefx`: the verbs of the native command, through WebAssembly.
 *
 * Exit codes: 0 done, 1 the program or its inputs were refused, 2 the command line was wrong.
 *
 * @module
 */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { call, type Engine, init } from "../engine/engine.ts";
import { takeLeaves } from "../engine/tensors.ts";
import { FxError, fxError } from "../errors.ts";
import { Tensor } from "../tensor/tensor.ts";

const USAGE = `Opens, inspects, runs and converts programs that PyTorch exported. Opening a file runs no code of it.

Usage:
  tracefx inspect FILE                                    the graph, signature, constraints, sizes and operators
  tracefx run FILE --inputs IN --outputs OUT [--repeat N] runs it on the tensors of a .safetensors file
  tracefx convert INPUT OUTPUT                            writes the program as an .fxg file

Options:
  --inputs IN     the inputs: in0, in1… by position, or the names that inspect shows
  --outputs OUT   where the outputs go, as out0, out1…
  --repeat N      runs this often, and tells the fastest time; the outputs are those of the first run
  --json          prints JSON for machines, errors included
  --help          shows this
  --version       shows the version`;

/** A command line that says something impossible. */
class CommandLineError extends Error {}

interface CommandLine {
  readonly words: readonly string[];
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
  readonly repeat: string;
  readonly json: boolean;
}

type EngineProgram = ReturnType<Engine["Program"]["open"]>;

async function execute(line: CommandLine): Promise<string> {
  const [verb, ...files] = line.words;
  switch (verb) {
    case "inspect": {
      const [file] = expect(files, ["FILE"]);
      return await withProgram(file as string, (program) => program.inspect(line.json));
    }
    case "run": {
      const [file] = expect(files, ["FILE"]);
      return await run(file as string, line);
    }
    case "convert": {
      const [input, output] = expect(files, ["INPUT", "OUTPUT"]) as [string, string];
      const converted = await withProgram(input, (program) => program.save());
      await write(output, converted);
      if (line.json) return JSON.stringify({ to: "fxg", bytes: converted.byteLength });
      return `${input} → ${output} (${converted.byteLength} bytes)`;
    }
    default:
      throw new CommandLineError(verb === undefined ? "a verb is missing" : `there is no verb ${verb}`);
  }
}

async function run(file: string, { inputs, outputs, repeat, json }: CommandLine): Promise<string> {
  if (inputs === undefined || outputs === undefined) throw new CommandLineError("run needs --inputs and --outputs");
  const times = Number(repeat);
  if (!Number.isSafeInteger(times) || times < 1) throw new CommandLineError("--repeat needs a number from 1 on");
  const given = await read(inputs);
  const { bytes, count, milliseconds } = await withProgram(file, (program, engine) => {
    const runner = program.runner();
    const values = runner.read_inputs(given);
    const timed = () => {
      const start = performance.now();
      const results = runner.run(values);
      return { results, milliseconds: performance.now() - start };
    };
    const first = timed();
    // Written at once: later calls may change the state that the outputs look at.
    const written = engine.write_outputs(first.results);
    const outcome = { bytes: written, count: free(first.results) };
    let fastest = first.milliseconds;
    for (let i = 1; i < times; i++) {
      const { results, milliseconds: last } = timed();
      free(results);
      fastest = Math.min(fastest, last);
    }
    return { ...outcome, milliseconds: fastest };
  });
  await write(outputs, bytes);
  if (json) return JSON.stringify({ outputs: count, milliseconds });
  return `${count} outputs in ${milliseconds.toFixed(3)} ms, written to ${outputs}`;
}

/** Frees the tensors of a call, and says how many results there were. */
function free(results: Uint32Array): number {
  const leaves = takeLeaves(results);
  for (const it of leaves) if (it instanceof Tensor) it.dispose();
  return leaves.length;
}

/** Opens a program for as long as `body` runs; the process ends afterwards, so its handles need no care. */
async function withProgram<T>(file: string, body: (program: EngineProgram, engine: Engine) => T): Promise<T> {
  const [bytes] = await Promise.all([read(file), init()]);
  return call((engine) => body(engine.Program.open(bytes), engine));
}

async function read(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw fxError("Io", `could not read ${file}: ${(cause as Error).message}`, { cause, help: "check the path" });
  }
}

/** Writes a file whole or not at all: an old file of this name stays as it was when writing fails. */
async function write(file: string, bytes: Uint8Array): Promise<void> {
  const partial = `${file}.partial-${process.pid}`;
  try {
    await writeFile(partial, bytes, { flush: true });
    await rename(partial, file);
  } catch (cause) {
    await rm(partial, { force: true });
    throw fxError("Io", `could not write ${file}: ${(cause as Error).message}`, {
      cause,
      help: "check the disk and the path",
    });
  }
}

function expect(files: readonly string[], names: readonly string[]): readonly string[] {
  if (files.length === names.length) return files;
  throw new CommandLineError(`this takes ${names.join(" and ")}, and got ${files.length} arguments`);
}

function problemJson(error: FxError): string {
  const { code, kind, reason, node = null, op = null, notes, help = null } = error;
  return JSON.stringify({ error: { code, name: kind, message: reason, node, op, notes, help } });
}

async function main(): Promise<number> {
  let json = false;
  try {
    const { values, positionals } = parse();
    json = values.json;
    if (values.help) {
      console.log(USAGE);
      return 0;
    }
    if (values.version) {
      await init();
      console.log(`tracefx ${call((engine) => engine.engine_version())}`);
      return 0;
    }
    console.log(await execute({ ...values, inputs: values.inputs, outputs: values.outputs, words: positionals }));
    return 0;
  } catch (error) {
    if (error instanceof CommandLineError) {
      console.error(`error: ${error.message}\n\n${USAGE}`);
      return 2;
    }
    if (!(error instanceof FxError)) throw error;
    console.error(json ? problemJson(error) : `error: ${error.message}`);
    return 1;
  }
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        inputs: { type: "string" },
        outputs: { type: "string" },
        repeat: { type: "string", default: "1" },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
        version: { type: "boolean", short: "V", default: false },
      },
    });
  } catch (error) {
    throw new CommandLineError((error as Error).message);
  }
}

process.exitCode = await main();
