/**
 * The page: a network that draws frames of the camera, of a video or of a built-in scene as a comic. On the GPU no pixel passes the CPU: a frame
 * becomes a tensor there, and the result is drawn to a canvas.
 *
 * @module
 */
import { drawTensor, exportProgram, FxError, init, tensor, tensorFromImage, torch } from "../ts/dist/index.js";
import { Comic } from "./comic.js";
import { drawScene, RATE } from "./scene.js";

/** @typedef {import("../ts/dist/index.js").Tensor} Tensor */
/** @typedef {import("../ts/dist/index.js").GpuTensor} GpuTensor */
/** @typedef {import("../ts/dist/index.js").ExportedProgram} ExportedProgram */
/** @typedef {import("../ts/dist/index.js").ProgramModule} ProgramModule */
/** @typedef {HTMLCanvasElement | HTMLVideoElement} Picture */
/** @typedef {{ key: string, module: ProgramModule, gpu: GPUDevice | undefined }} Runner */

/** @type {<T extends HTMLElement>(id: string, type: new () => T) => T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

const status = element("status", HTMLParagraphElement);
const about = element("program", HTMLParagraphElement);
const [source, look, device, width] = ["source", "look", "device", "width"].map((id) => element(id, HTMLSelectElement));
const start = element("start", HTMLButtonElement);
const [choice, file] = [element("choice", HTMLParagraphElement), element("file", HTMLInputElement)];
const [scene, video] = [element("scene", HTMLCanvasElement), element("video", HTMLVideoElement)];
const outputs = { gpu: element("gpu", HTMLCanvasElement), cpu: element("cpu", HTMLCanvasElement) };

/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2DSettings} [settings] */
function contextOf(canvas, settings) {
  const context = canvas.getContext("2d", { alpha: false, ...settings });
  if (context === null) throw new Error("the browser draws on no canvas");
  return context;
}

const onScene = contextOf(scene);
/** Where videos are scaled. */
const onSmall = contextOf(document.createElement("canvas"));
/** Where the CPU reads pixels. */
const onRead = contextOf(document.createElement("canvas"), { willReadFrequently: true });
const onCpu = contextOf(outputs.cpu);

/** What is told to whoever looks, in words. */
class Problem extends Error {}

/** There is no GPU to draw on, and the CPU may go on. */
class NoGpu extends Problem {}

const chosen = () => (device.value === "gpu" ? "gpu" : "cpu");
const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** The number of the frame of the scene, which goes on by the clock while the page runs. */
let frame = 0;
/** @type {{ program: ExportedProgram, key: string } | undefined} */
let exported;
/** @type {Runner | undefined} */
let runner;
/** @type {GPUDevice | undefined} */
let gpu;
/** Those who run look whether it is still their turn. */
let turn = 0;
let isRunning = false;
/** What to look at was chosen so often: who waits for it looks whether it is still wanted. */
let choices = 0;
/** What is done with the device, one after the other. @type {Promise<unknown>} */
let last = Promise.resolve();

/** A device with all the memory and buffers that it has for us. */
async function opened() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new NoGpu("There is no GPU for this page: the browser has no WebGPU here. The CPU draws.");
  const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = adapter.limits;
  const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage };
  const made = await adapter.requestDevice({ requiredLimits }).catch((/** @type {Error} */ cause) => {
    throw new NoGpu(`The GPU cannot be opened, and the CPU draws: ${cause.message}`, { cause });
  });
  void made.lost.then(() => {
    if (gpu === made) gpu = undefined;
  });
  return made;
}

/** The program for pictures of this size. @param {number} w @param {number} h */
function programOf(w, h) {
  const key = `${w} ${h} ${look.value}`;
  if (exported?.key !== key) {
    const network = new Comic(w, h, look.value === "ink").eval();
    exported = { key, program: exportProgram(network, [torch.zeros(1, 3, h, w)]) };
  }
  return exported.program;
}

/** The program for pictures of this size on the chosen device. @param {number} w @param {number} h @returns {Promise<Runner>} */
async function runnerOf(w, h) {
  const on = chosen();
  if (on === "gpu") gpu ??= await opened();
  const program = programOf(w, h);
  const key = `${exported?.key} ${on}`;
  if (runner?.key === key && (on === "cpu" || runner.gpu === gpu)) return runner;
  runner?.module.dispose();
  runner = undefined;
  const module = program.module({ device: on === "gpu" ? /** @type {GPUDevice} */ (gpu) : "cpu" });
  const steps = module.explain([torch.zeros(1, 3, h, w)]).steps.length;
  about.textContent = `${w} × ${h} pixels, ${program.graph.nodes.length} nodes, ${steps} steps of the plan.`;
  runner = { key, module, gpu: on === "gpu" ? gpu : undefined };
  return runner;
}

/** What is looked at now, of the size that the network takes. @returns {Picture} */
function pictureNow() {
  const most = Number(width.value);
  if (!scene.hidden) {
    if (scene.width !== most) [scene.width, scene.height] = [most, (most * 3) / 4];
    drawScene(onScene, scene.width, scene.height, frame);
    return scene;
  }
  const { videoWidth, videoHeight } = video;
  if (videoWidth === 0 || videoHeight === 0) throw new Problem("The video has no picture.");
  if (videoWidth <= most) return video;
  const small = onSmall.canvas;
  const height = Math.max(Math.round((videoHeight * most) / videoWidth), 8);
  if (small.width !== most || small.height !== height) [small.width, small.height] = [most, height];
  onSmall.drawImage(video, 0, 0, most, height);
  return small;
}

const sizeOf = (/** @type {Picture} */ it) =>
  it instanceof HTMLVideoElement ? [it.videoWidth, it.videoHeight] : [it.width, it.height];

/** From the picture to the canvas on the GPU. @param {GPUDevice} on @param {ProgramModule} module @param {Picture} picture */
async function drawOnGpu(on, module, picture) {
  const taken = await tensorFromImage(picture, { device: on });
  try {
    const drawn = /** @type {GpuTensor} */ (await module.runAsync([taken], { outputs: "gpu" }));
    try {
      await drawTensor(drawn, outputs.gpu);
    } finally {
      drawn.dispose();
    }
  } finally {
    taken.dispose();
  }
  // The time of a frame is that of the work, and not that of telling it.
  await on.queue.onSubmittedWorkDone();
}

/** The same by pixels that the CPU reads and writes. @param {ProgramModule} module @param {Picture} picture @param {number} w @param {number} h */
function drawOnCpu(module, picture, w, h) {
  const { canvas } = onRead;
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  onRead.drawImage(picture, 0, 0);
  const pixels = onRead.getImageData(0, 0, w, h);
  const planes = new Float32Array(3 * w * h);
  for (let at = 0; at < w * h; at++) {
    for (let plane = 0; plane < 3; plane++) planes[plane * w * h + at] = (pixels.data[4 * at + plane] ?? 0) / 255;
  }
  const taken = tensor(planes, { shape: [1, 3, h, w] });
  const drawn = /** @type {Tensor} */ (module(taken));
  const colours = drawn.toFloat32Array();
  for (let at = 0; at < w * h; at++) {
    for (let plane = 0; plane < 3; plane++) pixels.data[4 * at + plane] = 255 * (colours[plane * w * h + at] ?? 0);
  }
  taken.dispose();
  drawn.dispose();
  if (outputs.cpu.width !== w || outputs.cpu.height !== h) [outputs.cpu.width, outputs.cpu.height] = [w, h];
  onCpu.putImageData(pixels, 0, 0);
}

/** Draws what is looked at, once, and says how long it took. */
async function draw() {
  const picture = pictureNow();
  const [w, h] = sizeOf(picture);
  const { module, gpu: on, key } = await runnerOf(w, h);
  const began = performance.now();
  if (on === undefined) drawOnCpu(module, picture, w, h);
  else await drawOnGpu(on, module, picture);
  const name = on === undefined ? "cpu" : "gpu";
  for (const [it, canvas] of Object.entries(outputs)) canvas.hidden = it !== name;
  return { name, key, took: performance.now() - began };
}

/** Says what went wrong in words, and goes on with what there is, unless nobody expected it. @param {unknown} error */
function tell(error) {
  status.textContent = error instanceof Error ? error.message : String(error);
  if (!(error instanceof Problem || error instanceof FxError)) throw error;
}

/** Draws the frame that there is, after what is drawn. */
function drawOnce() {
  status.textContent = "Drawing…";
  const done = last.then(async () => {
    try {
      const { name } = await draw();
      status.textContent = `Frame ${frame} on the ${name.toUpperCase()}.`;
    } catch (error) {
      await failed(error);
    }
  });
  last = done.catch(() => undefined);
  return done;
}

/** Where there is no GPU, the CPU goes on; all else stops. @param {unknown} error */
async function failed(error) {
  let problem = error;
  if (error instanceof NoGpu) {
    device.value = "cpu";
    try {
      await draw();
      return tell(error);
    } catch (ofCpu) {
      problem = ofCpu;
    }
  }
  stop();
  tell(problem);
}

/** Frame by frame, until it is somebody else's turn, which it may be before the first one. @param {number} mine */
async function run(mine) {
  const first = { frame, at: performance.now() };
  /** When the last frames were done, and how long they took. @type {{ at: number, took: number }[]} */
  let done = [];
  let key = "";
  const isOurs = () => mine === turn;
  while (isOurs()) {
    frame = first.frame + Math.round(((performance.now() - first.at) * RATE) / 1000);
    try {
      const drawn = await draw();
      // The first frame of a program compiles.
      if (drawn.key === key) done = [...done.slice(-29), { at: performance.now(), took: drawn.took }];
      else [key, done] = [drawn.key, []];
      showTimes(drawn.name, done);
      status.textContent = "";
    } catch (error) {
      // Whoever has the turn now is not stopped for it.
      if (!isOurs()) return tell(error);
      await failed(error);
    }
    // Others have their turn, and the page shows what there is.
    await nextFrame();
  }
}

/** @param {string} name @param {readonly { at: number, took: number }[]} done */
function showTimes(name, done) {
  const [from, to] = [done[0], done.at(-1)];
  if (from === undefined || to === undefined || from === to) return;
  const each = done.reduce((sum, it) => sum + it.took, 0) / done.length;
  const rate = (1000 * (done.length - 1)) / (to.at - from.at);
  element(`${name}-time`, HTMLTableCellElement).textContent = `${each.toFixed(1)} ms`;
  element(`${name}-rate`, HTMLTableCellElement).textContent = `${rate.toFixed(1)} a second`;
}

function begin() {
  isRunning = true;
  start.textContent = "Stop";
  if (scene.hidden) void video.play().catch(() => undefined);
  // It takes its turn now, so that a stop before it begins is one of it.
  const mine = ++turn;
  const done = last.then(() => run(mine));
  last = done.catch(() => undefined);
  return done;
}

function stop() {
  turn += 1;
  isRunning = false;
  start.textContent = "Start";
  video.pause();
}

/** Switches a camera off. @param {MediaStream} stream */
function switchOff(stream) {
  for (const it of stream.getTracks()) it.stop();
}

/** Lets go of the camera, or of the file. */
function leaveVideo() {
  const { srcObject, src } = video;
  if (srcObject instanceof MediaStream) switchOff(srcObject);
  video.srcObject = null;
  video.removeAttribute("src");
  if (src.startsWith("blob:")) URL.revokeObjectURL(src);
}

/** What a browser says of a camera, in words. */
const REFUSALS = /** @type {Readonly<Record<string, string>>} */ ({
  NotAllowedError: "The camera was refused. Allow it for this page in the browser, and choose it again.",
  NotFoundError: "There is no camera.",
  NotReadableError: "The camera is taken: another program or page has it.",
});

/** @param {() => boolean} isWanted whether nothing else was chosen meanwhile */
async function openCamera(isWanted) {
  const { mediaDevices } = navigator;
  if (mediaDevices === undefined)
    throw new Problem("The browser gives a camera to pages that are served by https alone.");
  const size = { width: { ideal: Number(width.value) }, height: { ideal: (Number(width.value) * 3) / 4 } };
  /** @type {MediaStream} */
  let stream;
  try {
    stream = await mediaDevices.getUserMedia({ video: size, audio: false });
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    throw new Problem(REFUSALS[name] ?? `The camera cannot be opened: ${message}`);
  }
  // The browser may have asked for long, and the video is another's now.
  if (!isWanted()) return switchOff(stream);
  video.srcObject = stream;
  await played("The camera gives no pictures.");
}

async function openFile(/** @type {File} */ given) {
  video.src = URL.createObjectURL(given);
  await played(`The browser cannot play ${given.name}.`);
}

/** Plays until there is a picture. @param {string} otherwise */
async function played(otherwise) {
  try {
    await video.play();
  } catch {
    throw new Problem(otherwise);
  }
}

/** Looks at what was chosen; at the scene where that cannot be. @param {(isWanted: () => boolean) => Promise<void>} [open] */
async function lookAt(open) {
  const mine = ++choices;
  const isWanted = () => mine === choices;
  stop();
  // A frame that is being drawn keeps what it looks at.
  await last;
  if (!isWanted()) return;
  leaveVideo();
  /** @type {unknown} */
  let problem;
  try {
    await open?.(isWanted);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problem = error;
  }
  // What was chosen meanwhile has the video, and says itself how it went.
  if (!isWanted()) return;
  if (problem !== undefined) {
    leaveVideo();
    source.value = "scene";
  }
  const isScene = source.value === "scene";
  [scene.hidden, video.hidden, choice.hidden] = [!isScene, isScene, source.value !== "file"];
  if (problem === undefined) return void begin();
  await drawOnce();
  if (isWanted()) tell(problem);
}

async function main() {
  await init();
  start.addEventListener("click", () => (isRunning ? stop() : void begin()));
  for (const it of [device, look, width]) it.addEventListener("change", () => isRunning || void drawOnce());
  source.addEventListener("change", () => {
    if (source.value === "scene") return void lookAt();
    if (source.value === "camera") return void lookAt(openCamera);
    // The picture stays until a file is chosen, and a camera that is asked for is not wanted any more.
    choices += 1;
    choice.hidden = false;
    status.textContent = "Choose a file below.";
  });
  file.addEventListener("change", () => {
    const [given] = file.files ?? [];
    if (given !== undefined) void lookAt(() => openFile(given));
    file.value = "";
  });
  start.disabled = false;
  // Nothing moves by itself for those who asked for that.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) await drawOnce();
  else await begin();
}

await main();
