/**
 * `npx tracefx`: the native command, through WebAssembly. What it takes is the same table, and so is what it prints.
 *
 * Exit codes: 0 done, 1 the program or its inputs were refused, 2 the command line was wrong. Of `diff`, which scripts ask whether two
 * programs are the same, 1 is that they differ, and 2 whatever else there is.
 *
 * @module
 */
import { styleText } from "node:util";
import { FILE_LIMITS, RUN_LIMITS, RUN_MODES, USAGE } from "../../../bindings/command.ts";
import { call, getNumThreads, init } from "../engine/engine.ts";
import { canHaveThreads } from "../engine/threads.ts";
import { readPath } from "../engine/source.ts";
import { writeTarget } from "../engine/target.ts";
import { takeLeaves, withLeaves } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import { FxError, fxError } from "../base/errors.ts";
import type { EngineProgram, EngineRunner } from "../export/engineProgram.ts";
import { stepTimes, watched } from "../export/programModule.ts";
import { archivePieces, rootOf } from "../export/save.ts";
import { Tensor } from "../tensor/tensor.ts";
import { benched } from "./bench.ts";
import {
  type CommandLine,
  CommandLineError,
  formatOf,
  isForGpu,
  limitsOf,
  modeOf,
  numberOf,
  precisionOf,
  readCommandLine,
  shellOf,
} from "./commandLine.ts";
import { examine } from "./doctor.ts";
import { serveExplorer } from "./explore.ts";
import { printableLines } from "./printable.ts";
import type { GpuRunner } from "./onGpu.ts";
import { progressOf } from "./progress.ts";

interface Limits {
  readonly ofFiles: Record<string, number>;
  readonly ofRuns: Record<string, number>;
}

/** What a verb tells, and the exit code of the command where it is not 0. */
type Told = string | { readonly text: string; readonly code: number };

async function execute(line: CommandLine): Promise<Told> {
  const limits = limitsOfBoth(line);
  const [input = "", output = ""] = line.files;
  switch (line.verb.name) {
    case "inspect": {
      const program = decomposed(line, await open(input, limits));
      return call(() => program.inspect(line.options.has("json")));
    }
    case "run":
      return await run(input, line, limits);
    case "explain":
    case "profile":
      return await explained(input, line, limits);
    case "convert": {
      const format = formatOf(line, output);
      return await converted(line, decomposed(line, await open(input, limits)), format);
    }
    case "compile":
      return await compiled(input, output, line, limits);
    case "joint": {
      const format = formatOf(line, output);
      const index = numberOf(line, "loss-index", 0, 0);
      const program = await open(input, limits);
      return await converted(
        line,
        call(() => program.export_forward_backward(Math.min(index, 2 ** 32 - 1))),
        format,
      );
    }
    case "bench":
      return await bench(input, line, limits);
    case "diff": {
      if (Object.keys(limits.ofRuns).length > 0)
        throw new CommandLineError("diff runs nothing, and has no limits of runs");
      // What matches nodes is loaded when it is asked for.
      const { diffFiles } = await import("./diff.ts");
      const { text, isSame } = await diffFiles([input, output], limits.ofFiles, line.options.has("json"));
      return { text, code: isSame ? 0 : 1 };
    }
    case "doctor": {
      const { text, isReady } = await examine(line.options.has("json"));
      return { text, code: isReady ? 0 : 1 };
    }
    case "completions": {
      const shell = shellOf(line);
      const { COMPLETIONS } = await import("../../../bindings/completions.ts");
      return COMPLETIONS[shell].trimEnd();
    }
    case "onnx":
      throw new CommandLineError("onnx is of the native command alone");
    case "explore": {
      if (line.options.has("limit")) throw new CommandLineError("explore has no limits: the browser opens the files");
      const { url } = await serveExplorer(line.files, numberOf(line, "port", 0, 0, 65_535));
      return line.options.has("json") ? JSON.stringify({ url }) : `${url} shows it; ctrl+c ends`;
    }
    default:
      throw new Error(`the table of verbs has ${line.verb.name}`);
  }
}

function limitsOfBoth(line: CommandLine): Limits {
  const limits: Limits = { ofFiles: {}, ofRuns: {} };
  for (const [name, value] of Object.entries(limitsOf(line))) {
    if (RUN_LIMITS.includes(name)) limits.ofRuns[name] = value;
    else if (FILE_LIMITS.includes(name)) limits.ofFiles[name] = value;
    else throw new CommandLineError(`there is no limit ${name}`);
  }
  return limits;
}

async function run(file: string, line: CommandLine, limits: Limits): Promise<string> {
  const times = numberOf(line, "repeat", 1, 1);
  const mode = modeOf(line);
  const precision = precisionOf(line);
  const onGpu = isForGpu(line);
  const [inputs] = line.options.get("inputs") as [string];
  const [outputs] = line.options.get("outputs") as [string];
  const program = await open(file, limits);
  const runner = call(() => program.runner(JSON.stringify(limits.ofRuns), mode, precision));
  const runsOf = onGpu ? await runsOnGpu(runner, mode, precision, limits) : runsOnCpu(runner, limits);
  const given = await readPath(inputs, { limits: limits.ofFiles });
  const once = runsOf(call(() => runner.read_inputs(given)));
  const measured: number[] = [];
  const timed = async (): Promise<readonly EngineValue[]> => {
    const start = performance.now();
    const results = once();
    const leaves = results instanceof Promise ? await results : results;
    measured.push(performance.now() - start);
    return leaves;
  };
  const first = await timed();
  // Written at once: later calls may change the state that the outputs look at.
  const written = withLeaves(first, [], (words) => call((engine) => engine.write_outputs(words)));
  const count = first.length;
  free(first);
  await writeTarget(outputs, [written], undefined);
  while (measured.length < times) free(await timed());
  measured.sort((a, b) => a - b);
  const milliseconds = measured[0] as number;
  const median = measured[Math.floor(measured.length / 2)] as number;
  if (line.options.has("json")) return JSON.stringify({ outputs: count, milliseconds, median });
  const also = times > 1 ? ` (median ${median.toFixed(3)} ms)` : "";
  return `${count} outputs in ${milliseconds.toFixed(3)} ms${also}, written to ${outputs}`;
}

/** Shows the steps of a plan, and what they take. */
async function explained(file: string, line: CommandLine, limits: Limits): Promise<string> {
  const times = line.verb.name === "profile" ? numberOf(line, "repeat", 1, 10) : 0;
  const precision = precisionOf(line);
  const onGpu = isForGpu(line);
  const [inputs] = line.options.get("inputs") as [string];
  const [trace] = line.options.get("trace") ?? [];
  const program = await open(file, limits);
  const runner = call(() => program.runner(JSON.stringify(limits.ofRuns), RUN_MODES[0], precision));
  const gpu = onGpu ? await gpuRunner(runner, RUN_MODES[0], precision, limits) : undefined;
  const given = await readPath(inputs, { limits: limits.ofFiles });
  const values = call(() => runner.read_inputs(given));
  const format = line.options.has("json") ? "json" : "text";
  if (gpu !== undefined) return await gpu.explain(takeLeaves(values), format);
  if (times === 0) return call(() => runner.explain(values, undefined, format));
  const milliseconds = stepTimes(times, (watch) => {
    free(takeLeaves(watched(runner, values, watch, limits.ofRuns["milliseconds"])));
  });
  if (trace !== undefined) {
    const events = call(() => runner.explain(values, milliseconds, "trace"));
    await writeTarget(trace, [new TextEncoder().encode(events)], undefined);
  }
  return call(() => runner.explain(values, milliseconds, format));
}

/** Times the program in each way to run it, on the inputs that are given, or on zeros of the sizes that the program tells. */
async function bench(file: string, line: CommandLine, limits: Limits): Promise<string> {
  const repeat = line.options.has("repeat") ? numberOf(line, "repeat", 1, 1) : undefined;
  const precision = precisionOf(line);
  const onGpu = isForGpu(line);
  const program = await open(file, limits);
  const threads = numberOf(line, "threads", 1, getNumThreads());
  if (threads > 1 && !canHaveThreads()) {
    throw new CommandLineError("--threads above 1 takes Node 22 or later, or the native command");
  }
  const given = await givenInputs(line, limits);
  const ready = async (mode: string): Promise<() => void | Promise<void>> => {
    const runner = call(() => program.runner(JSON.stringify(limits.ofRuns), mode, precision));
    const runsOf = onGpu ? await runsOnGpu(runner, mode, precision, limits) : runsOnCpu(runner, limits);
    const once = runsOf(inputsOf(runner, given));
    return () => {
      const results = once();
      return results instanceof Promise ? results.then(free) : free(results);
    };
  };
  const asked = { device: onGpu ? "gpu" : "cpu", most: threads, repeat } as const;
  return await benched(ready, given === undefined ? "zeros" : "given", asked, line.options.has("json"));
}

/** Runs a program on inputs that the engine has as words, at once or later. */
type Runs = (values: Uint32Array) => () => readonly EngineValue[] | Promise<readonly EngineValue[]>;

function runsOnCpu(runner: EngineRunner, { ofRuns }: Limits): Runs {
  return (values) => () => takeLeaves(watched(runner, values, {}, ofRuns["milliseconds"]));
}

async function runsOnGpu(runner: EngineRunner, mode: string, precision: string, limits: Limits): Promise<Runs> {
  const gpu = await gpuRunner(runner, mode, precision, limits);
  return (values) => {
    const leaves = takeLeaves(values);
    return () => gpu.run(leaves);
  };
}

/** The program on the GPU, the code for which is loaded when it is asked for. */
async function gpuRunner(
  runner: EngineRunner,
  mode: string,
  precision: string,
  { ofRuns }: Limits,
): Promise<GpuRunner> {
  const { checkForGpu, GpuRunner } = await import("./onGpu.ts");
  checkForGpu(mode, precision);
  return await GpuRunner.of(runner, ofRuns["milliseconds"]);
}

async function givenInputs(
  line: CommandLine,
  limits: Limits,
): Promise<Awaited<ReturnType<typeof readPath>> | undefined> {
  const [inputs] = line.options.get("inputs") ?? [];
  return inputs === undefined ? undefined : await readPath(inputs, { limits: limits.ofFiles });
}

function inputsOf(runner: EngineRunner, given: Awaited<ReturnType<typeof givenInputs>>): Uint32Array {
  return given === undefined ? zeroInputs(runner) : call(() => runner.read_inputs(given));
}

/** Writes the program with a plan for the inputs that are given, or for those that its sizes tell. */
async function compiled(file: string, output: string, line: CommandLine, limits: Limits): Promise<string> {
  const precision = precisionOf(line);
  const program = await open(file, limits);
  const runner = call(() => program.runner(JSON.stringify(limits.ofRuns), RUN_MODES[0], precision));
  const values = inputsOf(runner, await givenInputs(line, limits));
  const { steps } = JSON.parse(call(() => runner.explain(values, undefined, "json"))) as { steps: unknown[] };
  const bytes = call(() => runner.compiled_file(values, 1));
  await writeTarget(output, [bytes], undefined);
  const [n, nSteps] = [bytes.byteLength, steps.length];
  if (line.options.has("json")) return JSON.stringify({ to: "fxg", bytes: n, steps: nSteps });
  return `${file} → ${output} (${n} bytes, a plan of ${nSteps} steps)`;
}

function zeroInputs(runner: EngineRunner): Uint32Array {
  try {
    return call(() => runner.zero_inputs());
  } catch (error) {
    if (!(error instanceof FxError) || error.kind !== "InputShape") throw error;
    const { kind, reason, notes, cause } = error;
    throw fxError(kind, reason, { notes, cause, help: "give inputs of such sizes: --inputs FILE" });
  }
}

/** Frees the tensors of a call. */
function free(results: readonly EngineValue[]): void {
  for (const it of results) if (it instanceof Tensor) it.dispose();
}

/** Writes a program that was made of a file, and tells so. */
async function converted(line: CommandLine, program: EngineProgram, format: "pt2" | "fxg"): Promise<string> {
  const [input, output] = line.files as [string, string];
  let n = 0;
  if (format === "pt2") {
    const archive = call((engine) => engine.Archive.of(program, rootOf(output) ?? "archive", "[]"));
    n = call(() => archive.length());
    await writeTarget(output, archivePieces(archive, {}), undefined);
  } else {
    const bytes = call(() => program.save());
    n = bytes.byteLength;
    await writeTarget(output, [bytes], undefined);
  }
  if (line.options.has("json")) return JSON.stringify({ to: format, bytes: n });
  return `${input} → ${output} (${n} bytes)`;
}

/** Opens a program. The process ends afterwards, so its handle needs no care. */
async function open(file: string, { ofFiles }: Limits): Promise<EngineProgram> {
  const [bytes] = await Promise.all([readPath(file, { limits: ofFiles }), init()]);
  return call((engine) => engine.Program.open(bytes, JSON.stringify(ofFiles)));
}

/** The program in terms of core operators if that is asked for. */
function decomposed(line: CommandLine, program: EngineProgram): EngineProgram {
  return line.options.has("decompose") ? call(() => program.run_decompositions()) : program;
}

function problemJson(error: FxError): string {
  const { code, kind, reason, node = null, op = null, notes, help = null } = error;
  return JSON.stringify({ error: { code, name: kind, message: reason, node, op, notes, help } });
}

/** Does what the command line asks for, and gives the exit code. A bug of the engine is a refusal like others. */
export async function main(args: readonly string[]): Promise<number> {
  const isJson = args.includes("--json");
  let refused = 1;
  try {
    const line = readCommandLine(args);
    if (line === "help") {
      console.log(USAGE);
    } else if (line === "version") {
      await init();
      console.log(`tracefx ${call((engine) => engine.engine_version())}`);
    } else {
      if (line.verb.name === "diff") refused = 2;
      const told = await executed(line, isJson);
      console.log(typeof told === "string" ? told : told.text);
      return typeof told === "string" ? 0 : told.code;
    }
    return 0;
  } catch (error) {
    if (error instanceof CommandLineError) {
      const help = "tracefx --help shows what there is";
      const text = `${label("red", "error:")} ${error.message}\n${label("cyan", "help:")} ${help}`;
      console.error(isJson ? problemJson(fxError("InvalidOption", error.message, { help })) : text);
      return 2;
    }
    if (error instanceof FxError) {
      console.error(isJson ? problemJson(error) : `${label("red", "error:")} ${printableLines(error.message)}`);
    } else {
      console.error(error);
    }
    return refused;
  }
}

async function executed(line: CommandLine, isJson: boolean): Promise<Told> {
  if (isJson) return await execute(line);
  await using _ = progressOf(`${line.verb.name} ${line.files[0] ?? ""}`);
  return await execute(line);
}

/** What stands before a message, in its colour where a person reads it. */
function label(style: "red" | "cyan", text: string): string {
  return styleText(style, text, { stream: process.stderr });
}
