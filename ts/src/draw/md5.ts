/**
 * MD5 (RFC 1321), by which PyTorch chooses the colour of a function. It keeps nothing secret.
 *
 * @module
 */

const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const;
const SINES = Uint32Array.from({ length: 64 }, (_, at) => Math.floor(Math.abs(Math.sin(at + 1)) * 2 ** 32));

/** The digest of a text in UTF-8, as 32 hexadecimal digits. */
export function md5(text: string): string {
  const bytes = new TextEncoder().encode(text);
  // The message, a one bit, zeros, and the length in bits, to a multiple of 64 bytes.
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n, true);
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let start = 0; start < padded.length; start += 64) addBlock(state, view, start);
  const digest = new DataView(new ArrayBuffer(16));
  state.forEach((word, at) => digest.setUint32(4 * at, word, true));
  return Array.from({ length: 16 }, (_, at) => digest.getUint8(at).toString(16).padStart(2, "0")).join("");
}

function addBlock(state: Uint32Array, view: DataView, start: number): void {
  let [a = 0, b = 0, c = 0, d = 0] = state;
  for (let step = 0; step < 64; step++) {
    const round = step >> 4;
    const [mixed, word] = mix(round, step, b, c, d);
    const sum = (a + mixed + (SINES[step] as number) + view.getUint32(start + 4 * word, true)) | 0;
    const shift = SHIFTS[round]?.[step % 4] ?? 0;
    [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
  }
  [a, b, c, d].forEach((word, at) => (state[at] = ((state[at] as number) + word) | 0));
}

/** The function of a round, and the word of the block that a step takes. */
function mix(round: number, step: number, b: number, c: number, d: number): [mixed: number, word: number] {
  if (round === 0) return [(b & c) | (~b & d), step];
  if (round === 1) return [(d & b) | (~d & c), (5 * step + 1) % 16];
  if (round === 2) return [b ^ c ^ d, (3 * step + 5) % 16];
  return [c ^ (b | ~d), (7 * step) % 16];
}
