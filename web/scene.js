/**
 * A moving scene, the same for the same number of a frame: what the page shows where there is no camera.
 *
 * @module
 */

/** Frames of a second. */
export const RATE = 30;

/** Draws a frame on a canvas of any size. */
export function drawScene(
  /** @type {CanvasRenderingContext2D} */ context,
  /** @type {number} */ width,
  /** @type {number} */ height,
  /** @type {number} */ frame,
) {
  const time = frame / RATE;
  context.save();
  // All is drawn on a field of four by three hundred.
  context.scale(width / 400, height / 300);
  sky(context);
  cloud(context, ((time * 14 + 60) % 520) - 60, 62, 1);
  cloud(context, ((time * 9 + 330) % 520) - 60, 104, 0.7);
  hills(context, 188, 18, 0.021, 1.3, "#5d7fa8", "#33507c");
  hills(context, 212, 22, 0.016, 4.2, "#4f9a63", "#1f5a3c");
  sea(context, time);
  boat(context, ((time * 22 + 120) % 500) - 50, 262 + 3 * Math.sin(time * 1.7), 0.06 * Math.sin(time * 1.3));
  balloon(context, 268 + 46 * Math.sin(time * 0.45), 92 + 16 * Math.sin(time * 0.8));
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {readonly number[]} line @param {readonly string[]} colours */
function gradient(context, line, colours) {
  const [x0, y0, x1, y1] = line;
  const made = context.createLinearGradient(x0, y0, x1, y1);
  colours.forEach((it, at) => made.addColorStop(at / (colours.length - 1), it));
  return made;
}

/** @param {CanvasRenderingContext2D} context */
function sky(context) {
  context.fillStyle = gradient(context, [0, 0, 0, 220], ["#3d7fd0", "#8fc3ee", "#ffd9a0", "#ff9d6c"]);
  context.fillRect(0, 0, 400, 300);
  const sun = context.createRadialGradient(84, 150, 4, 84, 150, 34);
  for (const [at, colour] of /** @type {const} */ ([
    [0, "#fffbe0"],
    [0.9, "#ffe27a"],
    [1, "#ffe27a00"],
  ]))
    sun.addColorStop(at, colour);
  context.fillStyle = sun;
  context.fillRect(40, 106, 88, 88);
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} size */
function cloud(context, x, y, size) {
  context.fillStyle = gradient(context, [0, y - 22 * size, 0, y + 16 * size], ["#ffffff", "#cfd9ea"]);
  context.beginPath();
  for (const [dx, dy, radius] of /** @type {const} */ ([
    [-24, 4, 13],
    [-6, -4, 19],
    [16, 0, 15],
    [32, 6, 10],
  ])) {
    context.moveTo(x + dx * size, y + dy * size);
    context.arc(x + dx * size, y + dy * size, radius * size, 0, 7);
  }
  context.fill();
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} y @param {number} high @param {number} often @param {number} from
 * @param {string} light @param {string} dark
 */
function hills(context, y, high, often, from, light, dark) {
  context.fillStyle = gradient(context, [0, y - high, 0, y + 40], [light, dark]);
  context.beginPath();
  context.moveTo(0, 300);
  for (let x = 0; x <= 400; x += 4) {
    context.lineTo(x, y - high * (Math.sin(x * often + from) + 0.35 * Math.sin(x * often * 2.7 + from)));
  }
  context.lineTo(400, 300);
  context.fill();
}

/** @param {CanvasRenderingContext2D} context @param {number} time */
function sea(context, time) {
  context.fillStyle = gradient(context, [0, 232, 0, 300], ["#4fb0c6", "#14466e"]);
  context.fillRect(0, 234, 400, 66);
  context.lineWidth = 2;
  context.strokeStyle = "#8fd0dc80";
  for (const [row, y] of [244, 258, 274, 291].entries()) {
    for (let x = -40 + ((time * (8 + 5 * row)) % 60); x < 420; x += 60) {
      context.beginPath();
      context.arc(x + 13 * row, y - 8, 11, 0.9, 2.2);
      context.stroke();
    }
  }
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} turn */
function boat(context, x, y, turn) {
  context.save();
  context.translate(x, y);
  context.rotate(turn);
  context.fillStyle = "#f4efe2";
  context.beginPath();
  context.moveTo(2, -58);
  context.quadraticCurveTo(34, -34, 30, -8);
  context.lineTo(2, -8);
  context.fill();
  context.fillStyle = "#d8452e";
  context.beginPath();
  context.moveTo(-2, -50);
  context.lineTo(-2, -8);
  context.lineTo(-24, -8);
  context.fill();
  context.fillStyle = gradient(context, [0, -6, 0, 14], ["#a8642f", "#4d2712"]);
  context.beginPath();
  context.moveTo(-34, -6);
  context.lineTo(38, -6);
  context.quadraticCurveTo(28, 13, 14, 14);
  context.lineTo(-20, 14);
  context.fill();
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y */
function balloon(context, x, y) {
  context.strokeStyle = "#5b4632";
  context.lineWidth = 1.2;
  for (const side of [-1, 1]) {
    context.beginPath();
    context.moveTo(x + 18 * side, y + 38);
    context.lineTo(x + 7 * side, y + 66);
    context.stroke();
  }
  context.fillStyle = gradient(context, [x - 9, 0, x + 9, 0], ["#b97a3c", "#6e421b"]);
  context.fillRect(x - 9, y + 64, 18, 13);
  // The stripes get narrower to the sides.
  const shape = () => {
    context.beginPath();
    context.moveTo(x - 18, y + 40);
    context.bezierCurveTo(x - 76, y - 8, x - 52, y - 58, x, y - 58);
    context.bezierCurveTo(x + 52, y - 58, x + 76, y - 8, x + 18, y + 40);
    context.closePath();
  };
  shape();
  context.fillStyle = "#f3c53c";
  context.fill();
  context.save();
  shape();
  context.clip();
  context.fillStyle = "#d93b32";
  for (const width of [40, 17]) {
    context.beginPath();
    for (const half of [width, width * 0.62]) {
      context.moveTo(x + half, y - 6);
      context.ellipse(x, y - 6, half, 66, 0, 0, 2 * Math.PI);
    }
    context.fill("evenodd");
  }
  const shade = context.createRadialGradient(x - 18, y - 30, 8, x, y - 10, 66);
  shade.addColorStop(0, "#ffffff70");
  shade.addColorStop(0.45, "#ffffff00");
  shade.addColorStop(1, "#30102080");
  context.fillStyle = shade;
  context.fillRect(x - 70, y - 60, 140, 110);
  context.restore();
}
