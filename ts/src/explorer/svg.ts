/**
 * Pictures as SVG.
 *
 * @module
 */
import {
  type BoxLook,
  draw,
  type Marks,
  NO_MARKS,
  type Pen,
  type Picture,
  type TextLook,
  type WireLook,
} from "./drawing.ts";
import { LIGHT, type Theme } from "./theme.ts";

/** The whole picture as an SVG document. */
export function svgOf(picture: Picture, theme: Theme = LIGHT, marks: Marks = NO_MARKS): string {
  const pen = new SvgPen();
  const { width, height } = picture.layout;
  draw(pen, picture, { left: 0, top: 0, right: width, bottom: height, scale: 1 }, theme, marks);
  const size = `width="${number(width)}" height="${number(height)}" viewBox="0 0 ${number(width)} ${number(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif">`,
    `<rect width="100%" height="100%" fill="${theme.background}"/>`,
    ...pen.parts,
    "</svg>\n",
  ].join("\n");
}

/** About how wide a letter is, of the size of the text. */
const LETTER = 0.56;

class SvgPen implements Pen {
  readonly parts: string[] = [];

  box(x: number, y: number, width: number, height: number, { fill, border, line, radius }: BoxLook): void {
    const place = `x="${number(x)}" y="${number(y)}" width="${number(width)}" height="${number(height)}"`;
    this.parts.push(`<rect ${place} rx="${radius}" fill="${fill}" stroke="${border}" stroke-width="${line}"/>`);
  }

  bar(x: number, y: number, width: number, height: number, fill: string): void {
    const place = `x="${number(x)}" y="${number(y)}" width="${number(width)}" height="${number(height)}"`;
    this.parts.push(`<rect ${place} fill="${fill}"/>`);
  }

  text(x: number, y: number, text: string, width: number, { fill, size, bold }: TextLook): void {
    if (text === "") return;
    const most = Math.max(1, Math.floor(width / (size * LETTER)));
    const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
    const weight = bold ? ' font-weight="600"' : "";
    this.parts.push(
      `<text x="${number(x)}" y="${number(y)}" font-size="${size}"${weight} fill="${fill}">${escaped(cut)}</text>`,
    );
  }

  wire(points: ArrayLike<number>, from: number, to: number, { stroke, line }: WireLook): void {
    let [x, y] = [points[2 * from] as number, points[2 * from + 1] as number];
    let path = `M${number(x)} ${number(y)}`;
    for (let at = from + 1; at < to; at++) {
      const [nextX, nextY] = [points[2 * at] as number, points[2 * at + 1] as number];
      const middle = number((y + nextY) / 2);
      path +=
        nextX === x
          ? `V${number(nextY)}`
          : `C${number(x)} ${middle} ${number(nextX)} ${middle} ${number(nextX)} ${number(nextY)}`;
      [x, y] = [nextX, nextY];
    }
    this.parts.push(`<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${line}"/>`);
  }
}

function number(value: number): string {
  return String(Math.round(10 * value) / 10);
}

/** What XML has no character for becomes the sign for that. */
function escaped(text: string): string {
  const shown = text.replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
  return shown.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
