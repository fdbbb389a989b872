/** A worker of a page's own that imports the package, and has tensors on its GPU: it says what became of them. */
import { exportProgram, init, nn, tensorFromImage, torch } from "../../ts/dist/index.js";

/** @typedef {import("../../ts/dist/index.js").GpuTensor} GpuTensor */
/** @typedef {import("../../ts/dist/index.js").Tensor} Tensor */

/** Red, green and blue of each image. */
const COLORS = [255, 0, 51];

class Net extends nn.Module {
  /** @override */
  forward(/** @type {Tensor} */ x) {
    return x.mul(2).add(1);
  }
}

/** The mean of each plane of an image, of what the GPU was given. */
const planes = async (/** @type {Parameters<typeof tensorFromImage>[0]} */ source) => {
  using there = await tensorFromImage(source);
  const means = (await there.cpu()).mean([0, 2, 3]).toFloat32Array();
  return { shape: there.shape, means: Array.from(means, (it) => Math.round(it * 255)) };
};

const images = async () => {
  const canvas = new OffscreenCanvas(6, 4);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = `rgb(${COLORS.join(" ")})`;
  context.fillRect(0, 0, 6, 4);
  const bitmap = await createImageBitmap(canvas);
  const frame = new VideoFrame(canvas, { timestamp: 0 });
  const found = [await planes(canvas), await planes(bitmap), await planes(frame)];
  frame.close();
  return found;
};

const run = async () => {
  await init();
  const x = torch.arange(6).reshape(2, 3).to("float32");
  using model = exportProgram(new Net(), [x]).module({ device: "gpu" });
  let there = await x.to("gpu");
  for (let round = 0; round < 3; round++) {
    using before = there;
    there = /** @type {GpuTensor} */ (await model.runAsync([before], { outputs: "gpu" }));
  }
  const device = String(there.device);
  return { device, values: (await there.cpu()).toArray(), images: await images() };
};

// Not awaited at the top: the worker's messages begin when its module has run.
run().then(postMessage, (/** @type {Error} */ error) => postMessage({ error: error.stack ?? error.message }));
