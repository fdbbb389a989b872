/**
 * A canvas to draw on, read as the digits that the network was trained on: 8 by 8 pixels, centred, from 0 to 1.
 *
 * The training images are 32 by 32 bitmaps in which each 4 by 4 block was counted: a pixel is the share of ink in its block.
 *
 * @module
 */

const SIZE = 8;
/** The width of the pen, in pixels of the image. */
const PEN = 1.1;

/**
 * Makes a canvas that calls `onChange` with the pixels after each stroke.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {(pixels: Float32Array) => void} onChange
 */
export function drawing(canvas, onChange) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  /** @type {[x: number, y: number] | undefined} */
  let last;

  const place = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return /** @type {[number, number]} */ ([
      ((event.clientX - box.left) / box.width) * canvas.width,
      ((event.clientY - box.top) / box.height) * canvas.height,
    ]);
  };
  const clear = () => {
    context.fillStyle = "black";
    context.fillRect(0, 0, canvas.width, canvas.height);
    onChange(new Float32Array(SIZE * SIZE));
  };
  const stroke = (/** @type {PointerEvent} */ event) => {
    if (last === undefined) return;
    const to = place(event);
    context.strokeStyle = "white";
    context.lineCap = "round";
    context.lineWidth = (canvas.width / SIZE) * PEN;
    context.beginPath();
    context.moveTo(...last);
    context.lineTo(...to);
    context.stroke();
    last = to;
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    stroke(event);
  });
  canvas.addEventListener("pointermove", stroke);
  canvas.addEventListener("pointerup", () => {
    last = undefined;
    onChange(readPixels(context, canvas));
  });

  return {
    clear,
    /** Shows an image without calling `onChange`. */
    show(/** @type {Float32Array} */ pixels) {
      const block = canvas.width / SIZE;
      pixels.forEach((it, at) => {
        const grey = Math.round(255 * it);
        context.fillStyle = `rgb(${grey} ${grey} ${grey})`;
        context.fillRect((at % SIZE) * block, Math.floor(at / SIZE) * block, block, block);
      });
    },
  };
}

/** The share of ink in each block, of the drawing moved so that its ink is in the middle. */
function readPixels(/** @type {CanvasRenderingContext2D} */ context, /** @type {HTMLCanvasElement} */ canvas) {
  const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
  const ink = (/** @type {number} */ x, /** @type {number} */ y) => (data[4 * (y * width + x)] ?? 0) / 255;
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (ink(x, y) === 0) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
    }
  }
  const pixels = new Float32Array(SIZE * SIZE);
  if (right <= left) return pixels;
  const block = width / SIZE;
  const [dx, dy] = [Math.round((width - left - right) / 2), Math.round((height - top - bottom) / 2)];
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      const [column, row] = [Math.floor((x + dx) / block), Math.floor((y + dy) / block)];
      const at = row * SIZE + column;
      if (column >= 0 && column < SIZE && row >= 0 && row < SIZE)
        pixels[at] = (pixels[at] ?? 0) + ink(x, y) / block ** 2;
    }
  }
  return pixels;
}
