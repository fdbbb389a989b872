/** Pictures as tensors on the GPU of a real browser: images and textures in, canvases and textures out. A processor does the work. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as tracefx from "../../ts/src/index.ts";
import { CANVASES, count, gpuPage } from "./gpu.mjs";
import type { counter } from "./gpuCounter.mjs";
import type * as helpers from "./gpuHelpers.mjs";

declare const probe: typeof tracefx & { counter: typeof counter };

const PATIENCE = 120_000;

let host: Awaited<ReturnType<typeof gpuPage>>;
let page: Page;

beforeAll(async () => {
  host = await gpuPage(true, CANVASES);
  ({ page } = host);
  await count(page);
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

/** Pixels of these greys. */
const greys = (...values: number[]): number[] => values.flatMap((it) => [it, it, it, 255]);

/** One row of these colours, as a list of a batch. */
const inRow = (red: number[], green: number[], blue: number[]) => [[[red], [green], [blue]]];

declare const programOf: typeof helpers.programOf;
declare const buffersFromNow: typeof helpers.buffersFromNow;
declare const shown: typeof helpers.shown;
declare const refusal: typeof helpers.refusal;
declare const sinceLast: ReturnType<typeof counter>;

test(
  "is made of images, canvases and frames of videos, and an image that has no pixels is refused",
  async () => {
    const found = await page.evaluate(async () => {
      const pixels = Uint8ClampedArray.of(255, 0, 51, 255, 0, 102, 0, 255, 0, 0, 255, 255);
      const image = new ImageData(pixels, 3, 1);
      const canvas = new OffscreenCanvas(3, 1);
      canvas.getContext("2d")?.putImageData(image, 0, 0);
      const frame = new VideoFrame(canvas, { timestamp: 0 });
      const program = programOf((a) => a.mul(5).round(), probe.torch.zeros(1, 3, 1, 3));
      const module = program.module({ device: "gpu" });
      sinceLast();
      const rows = [];
      for (const source of [await createImageBitmap(image), canvas, frame]) {
        const there = await probe.tensorFromImage(source);
        const { bytesUp, bytesDown } = sinceLast();
        rows.push([there.shape, bytesUp + bytesDown, ((await module.runAsync([there])) as tracefx.Tensor).toArray()]);
        sinceLast();
        there.dispose();
      }
      frame.close();
      const device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
      const own = await probe.tensorFromImage(canvas, { device });
      return {
        rows,
        own: (await own.cpu()).shape,
        refused: [
          await refusal(() => probe.tensorFromImage({})),
          await refusal(() => probe.tensorFromImage(document.createElement("video"))),
          await refusal(() => probe.tensorFromImage(frame)),
          await refusal(() => probe.tensorFromImage({ width: 3, height: 1 } as object)),
        ],
      };
    });
    const colours = [[[[5, 0, 0]], [[0, 2, 0]], [[1, 0, 5]]]];
    expect(found.rows).toEqual(Array.from({ length: 3 }, () => [[1, 3, 1, 3], 0, colours]));
    expect(found.own).toEqual([1, 3, 1, 3]);
    for (const it of found.refused) expect(it).toMatch(/FX0304/u);
  },
  PATIENCE,
);

test(
  "is made of a texture of the caller's, of any format of fractions, where it is",
  async () => {
    const found = await page.evaluate(async () => {
      const adapter = (await navigator.gpu.requestAdapter()) as GPUAdapter;
      const device = await adapter.requestDevice();
      const [COPY_DST, TEXTURE_BINDING, RENDER_ATTACHMENT] = [2, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}) =>
        device.createTexture({ size: [2, 1], format, usage: COPY_DST | TEXTURE_BINDING, ...more });
      /** Two pixels of a format. */
      const filled = (format: GPUTextureFormat, data: ArrayBufferView<ArrayBuffer>) => {
        const texture = made(format);
        device.queue.writeTexture({ texture }, data, {}, [2, 1]);
        return texture;
      };
      const textures = [
        filled("rgba8unorm", Uint8Array.of(255, 0, 51, 255, 0, 102, 0, 255)),
        filled("bgra8unorm", Uint8Array.of(51, 0, 255, 255, 0, 102, 0, 255)),
        filled("rgba8snorm", Int8Array.of(-127, 0, 127, 0, 127, 0, 0, 0)),
        // The bits of 1, 0.5, -2 and 0 as halves.
        filled("rgba16float", Uint16Array.of(0x3c00, 0x3800, 0xc000, 0, 0, 0x3c00, 0, 0)),
        // What cannot be filtered is read all the same.
        filled("rgba32float", Float32Array.of(0.25, 7, -3, 1, 0, 0, 0.5, 1)),
        filled("r8unorm", Uint8Array.of(255, 51)),
        made("rgba8unorm", { mipLevelCount: 2 }),
      ];
      const rows = [];
      sinceLast();
      for (const texture of textures) {
        const there = await probe.tensorFromImage(texture, { device });
        const { bytesUp, bytesDown } = sinceLast();
        rows.push([texture.format, bytesUp + bytesDown, (await there.cpu()).mul(20).round().div(4).toArray()]);
        sinceLast();
      }
      const destroyed = made("rgba8unorm");
      destroyed.destroy();
      const other = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const lost = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      lost.destroy();
      await lost.lost;
      const wrong: Record<string, [GPUTexture, GPUDevice | "gpu" | undefined]> = {
        usage: [made("rgba8unorm", { usage: COPY_DST }), device],
        whole: [made("rgba8uint"), device],
        depth: [made("depth24plus", { usage: TEXTURE_BINDING }), device],
        layers: [made("rgba8unorm", { size: [2, 1, 3] }), device],
        volume: [made("rgba8unorm", { dimension: "3d", size: [2, 1, 1] }), device],
        samples: [made("rgba8unorm", { sampleCount: 4, usage: TEXTURE_BINDING | RENDER_ATTACHMENT }), device],
        destroyed: [destroyed, device],
        other: [textures[0] as GPUTexture, other],
        lost: [textures[0] as GPUTexture, lost],
        noDevice: [textures[0] as GPUTexture, undefined],
        ofModules: [textures[0] as GPUTexture, "gpu"],
      };
      const refused: Record<string, string> = {};
      for (const [name, [texture, on]] of Object.entries(wrong)) {
        const options = on === undefined ? {} : { device: on };
        refused[name] = await refusal(() => probe.tensorFromImage(texture, options));
      }
      // What was refused leaves the device as it was.
      const [first] = textures;
      const again = await (await probe.tensorFromImage(first as GPUTexture, { device })).cpu();
      return { rows, refused, again: again.shape };
    });
    expect(found.rows).toEqual([
      ["rgba8unorm", 0, inRow([5, 0], [0, 2], [1, 0])],
      ["bgra8unorm", 0, inRow([5, 0], [0, 2], [1, 0])],
      ["rgba8snorm", 0, inRow([-5, 5], [0, 0], [5, 0])],
      ["rgba16float", 0, inRow([5, 0], [2.5, 5], [-10, 0])],
      ["rgba32float", 0, inRow([1.25, 0], [35, 0], [-15, 2.5])],
      ["r8unorm", 0, inRow([5, 1], [0, 0], [0, 0])],
      ["rgba8unorm", 0, inRow([0, 0], [0, 0], [0, 0])],
    ]);
    const { lost, ...others } = found.refused;
    for (const [name, it] of Object.entries(others)) expect(it, name).toContain("FX0304");
    expect(others["usage"]).toContain("GPUTextureUsage.TEXTURE_BINDING");
    expect(others["whole"]).toContain("not rgba8uint");
    expect(others["depth"]).toContain("not depth24plus");
    for (const name of ["layers", "volume", "samples"]) expect(others[name]).toContain("one layer and one sample");
    for (const name of ["destroyed", "other"]) expect(others[name]).toContain("the texture is refused");
    for (const name of ["noDevice", "ofModules"]) expect(others[name]).toContain("options.device");
    expect(lost).toContain("FX0707");
    expect(found.again).toEqual([1, 3, 1, 2]);
  },
  PATIENCE,
);

test(
  "is drawn to canvases and textures without crossing, as a view too, and clamped",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const of = async (values: number[], ...shape: number[]) =>
        await torch.tensor(values, { dtype: "float32" }).div(255).reshape(shape).to(device);
      const COLOURS = [255, 0, 51, 102, 0, 153, 0, 255, 7, 8, 9, 10, 30, 40, 50, 60, 70, 80];
      const picture = await of(COLOURS, 1, 3, 2, 3);
      const canvas = new OffscreenCanvas(9, 9);
      const element = document.createElement("canvas");
      const pictures: Record<string, number[]> = {};
      await probe.drawTensor(picture, canvas);
      sinceLast();
      await probe.drawTensor(picture, canvas);
      const counts = sinceLast();
      pictures["canvas"] = shown(canvas);
      const sizes = [canvas.width, canvas.height];
      await probe.drawTensor(picture, element);
      pictures["element"] = shown(element);
      // Views: turned over, a slice that begins later, one row for all, and planes that lie pixel by pixel.
      const input = await of([...Array(24).keys()], 2, 4, 3, 1);
      const views = programOf(
        (a) => [
          a.select(0, 1).narrow(0, 1, 3).transpose(1, 2),
          a.select(0, 0).select(0, 2),
          a.select(0, 0).narrow(0, 0, 1).expand(1, 3, 2),
          a.select(0, 1).narrow(0, 1, 3).permute(2, 1, 0),
          a.add(1),
        ],
        torch.zeros(2, 4, 3, 1),
      ).module({ device });
      const given = (await views.runAsync([input], { outputs: "gpu" })) as tracefx.GpuTensor[];
      for (const [at, it] of given.slice(0, 4).entries()) {
        await probe.drawTensor(it, canvas);
        pictures[`view ${at} ${it.shape.join()} ${it.stride().join()} from ${it.storageOffset()}`] = shown(canvas);
      }
      const areViews = given.slice(0, 4).every((it) => it.buffer === input.buffer);
      const grey = await torch.tensor([[-1, 0.2, 4]], { dtype: "float16" }).to(device);
      await probe.drawTensor(grey, canvas);
      pictures["clamped"] = shown(canvas);
      await probe.drawTensor(await of([255, 0, 0, 51], 4, 1, 1), canvas);
      // Half of a colour is seen with its alpha.
      pictures["alpha"] = shown(canvas);
      // A configuration of the caller's is kept, and one of another device is not.
      const own = new OffscreenCanvas(3, 2);
      const context = own.getContext("webgpu") as GPUCanvasContext;
      context.configure({ device, format: "rgba16float", alphaMode: "premultiplied" });
      await probe.drawTensor(picture, own);
      const kept = context.getConfiguration()?.format;
      pictures["own"] = shown(own);
      await probe.drawTensor(await picture.cpu().then((it) => it.to("gpu")), own);
      const isOther = context.getConfiguration()?.device !== device;
      pictures["other"] = shown(own);
      // Two at once, of which one keeps the configuration of the caller's and the other has none of use there.
      context.configure({ device, format: "rgba16float", alphaMode: "opaque" });
      const seen = await of([255, 0, 0, 51], 4, 1, 1);
      await Promise.all([probe.drawTensor(picture, own), probe.drawTensor(seen, own)]);
      return { pictures, counts, sizes, kept, isOther, areViews };
    });
    const planes = [
      [255, 0, 51, 102, 0, 153],
      [0, 255, 7, 8, 9, 10],
      [30, 40, 50, 60, 70, 80],
    ];
    const picture = (planes[0] as number[]).flatMap((_, at) => [...planes.map((it) => it[at] as number), 255]);
    expect(found.pictures).toEqual({
      canvas: picture,
      element: picture,
      "view 0 3,1,3 3,1,1 from 15": [15, 18, 21, 255, 16, 19, 22, 255, 17, 20, 23, 255],
      "view 1 3,1 1,1 from 6": greys(6, 7, 8),
      "view 2 1,3,2 3,1,0 from 0": greys(0, 0, 1, 1, 2, 2),
      "view 3 1,3,3 1,1,3 from 15": greys(15, 18, 21, 16, 19, 22, 17, 20, 23),
      clamped: greys(0, 51, 255),
      alpha: [255, 0, 0, 51],
      own: picture,
      other: picture,
    });
    // How the picture lies goes up, and nothing of it.
    expect(found.counts).toMatchObject({ submissions: 1, readbacks: 0, bytesUp: 20, bytesDown: 0, bytesCopied: 0 });
    expect(found).toMatchObject({ sizes: [3, 2], kept: "rgba16float", isOther: true, areViews: true });
  },
  PATIENCE,
);

test(
  "goes into a texture of the caller's and comes out of it as it was, in every format that can be drawn to",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const [COPY_SRC, TEXTURE_BINDING, RENDER_ATTACHMENT] = [1, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}) => {
        const usage = RENDER_ATTACHMENT | TEXTURE_BINDING | COPY_SRC;
        return device.createTexture({ size: [5, 2], format, usage, ...more });
      };
      torch.manualSeed(3);
      const colours = torch.rand(1, 3, 2, 5).mul(255).round().div(255);
      const x = await colours.to(device);
      const far: Record<string, number> = {};
      for (const format of [
        "rgba8unorm",
        "bgra8unorm",
        "rgba8unorm-srgb",
        "rgba16float",
        "rgba32float",
        "rgb10a2unorm",
      ] as const) {
        const texture = made(format);
        await probe.drawTensor(x, texture);
        const back = await probe.tensorFromImage(texture, { device });
        far[format] = Number((await back.cpu()).sub(colours).abs().max().item());
      }
      const red = made("r8unorm", { mipLevelCount: 2 });
      await probe.drawTensor(x, red);
      const ofRed = await probe.tensorFromImage(red, { device });
      const isRed = torch.allclose((await ofRed.cpu()).get(0).get(0), colours.get(0).get(0));
      // Alpha is beside the colours, which are not multiplied by it.
      const four = await torch.tensor([1, 0.2, 0, 0.4]).reshape(4, 1, 1).to(device);
      const straight = made("rgba8unorm", { size: [1, 1] });
      await probe.drawTensor(four, straight);
      const staging = device.createBuffer({ size: 256, usage: 9 });
      const encoder = device.createCommandEncoder();
      encoder.copyTextureToBuffer({ texture: straight }, { buffer: staging, bytesPerRow: 256 }, [1, 1]);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(1);
      const pixel = [...new Uint8Array(staging.getMappedRange(0, 4))];
      return { far, isRed, pixel };
    });
    const { rgba16float: halves, "rgba8unorm-srgb": linear, rgb10a2unorm: tens, ...exact } = found.far;
    for (const [format, it] of Object.entries(exact)) expect(it, format).toBeLessThan(1e-6);
    expect(halves).toBeLessThan(2 ** -11);
    expect(tens).toBeLessThan(1 / 2046);
    expect(linear).toBeLessThan(1 / 128);
    expect(found.isRed).toBe(true);
    expect(found.pixel).toEqual([255, 51, 0, 102]);
  },
  PATIENCE,
);

test(
  "is refused as a picture where it is none, where the target is none, and when it is gone",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const other = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const [COPY_SRC, STORAGE, TEXTURE_BINDING, RENDER_ATTACHMENT] = [4, 128, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}, of = device) =>
        of.createTexture({ size: [2, 2], format, usage: RENDER_ATTACHMENT, ...more });
      const zeros = async (...shape: number[]) => await torch.zeros(shape).to(device);
      const x = await zeros(3, 2, 2);
      const canvas = new OffscreenCanvas(2, 2);
      const taken = new OffscreenCanvas(2, 2);
      taken.getContext("2d");
      const gone = document.createElement("canvas");
      gone.transferControlToOffscreen();
      const destroyed = made("rgba8unorm");
      destroyed.destroy();
      const disposed = await zeros(3, 2, 2);
      disposed.dispose();
      const buffer = device.createBuffer({ size: 48, usage: COPY_SRC });
      const unseen = await probe.tensorFromGpuBuffer(buffer, { device, dtype: "float32", shape: [3, 2, 2] });
      const lent = device.createBuffer({ size: 48, usage: COPY_SRC | STORAGE });
      const given = await probe.tensorFromGpuBuffer(lent, { device, dtype: "float32", shape: [3, 2, 2] });
      lent.destroy();
      const draw = (tensor: tracefx.GpuTensor, ...[target]: unknown[]) =>
        refusal(() => probe.drawTensor(tensor, (target ?? canvas) as OffscreenCanvas));
      const refused = {
        FX0602: [
          await draw(torch.zeros(3, 2, 2) as unknown as tracefx.GpuTensor),
          await draw(await torch.zeros(3, 2, 2).to("uint8").to(device)),
          await draw(await torch.zeros(3, 2, 2).double().to(device)),
          await draw(undefined as unknown as tracefx.GpuTensor),
        ],
        FX0603: [
          await draw(await zeros(2)),
          await draw(await zeros(2, 2, 2)),
          await draw(await zeros(2, 3, 2, 2)),
          await draw(await zeros(1, 1, 3, 2, 2)),
          await draw(await zeros(3, 0, 2)),
          await draw(x, made("rgba8unorm", { size: [3, 2] })),
        ],
        FX0304: [
          await draw(x, 5),
          await draw(x, {}),
          await draw(x, taken),
          await draw(x, gone),
          await draw(x, made("rgba8unorm", { usage: TEXTURE_BINDING })),
          await draw(x, made("rgba8uint")),
          await draw(x, made("depth24plus")),
          await draw(x, made("rgba8unorm", { size: [2, 2, 2] })),
          await draw(x, made("rgba8unorm", { sampleCount: 4 })),
          await draw(x, made("rgba8unorm", {}, other)),
          await draw(x, destroyed),
          await draw(unseen),
          await draw(given),
        ],
        FX0701: [await draw(disposed)],
      };
      // It is drawn though it was given up while what draws was compiled.
      const givenUp = await zeros(3, 2, 2);
      const { createRenderPipelineAsync } = GPUDevice.prototype;
      GPUDevice.prototype.createRenderPipelineAsync = function (descriptor) {
        givenUp.dispose();
        return createRenderPipelineAsync.call(this, descriptor);
      };
      const after = [await draw(givenUp, made("rgba16float")), givenUp.isDisposed];
      GPUDevice.prototype.createRenderPipelineAsync = createRenderPipelineAsync;
      const buffers = buffersFromNow();
      await probe.drawTensor(x, canvas);
      await draw(x, destroyed);
      const left = buffers.living.size;
      buffers.stop();
      device.destroy();
      await device.lost;
      const lost = await draw(x);
      return { refused, after, left, lost };
    });
    for (const [code, texts] of Object.entries(found.refused)) {
      for (const [at, it] of texts.entries()) expect(it, `${code} ${at}`).toContain(code);
    }
    expect(found.refused.FX0602[0]).toContain('await x.to("gpu")');
    expect(found.refused.FX0603[2]).toContain("[2, 3, 2, 2]");
    expect(found.refused.FX0304[2]).toContain("context of another kind");
    expect(found.refused.FX0304[4]).toContain("GPUTextureUsage.RENDER_ATTACHMENT");
    expect(found.refused.FX0304[11]).toContain("GPUBufferUsage.STORAGE");
    expect(found.refused.FX0304[12]).toContain("x.buffer");
    expect(found).toMatchObject({ after: ["no error", true], left: 0, lost: expect.stringContaining("FX0707") });
  },
  PATIENCE,
);
