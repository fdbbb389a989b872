/**
 * The checksum of files: CRC-32 as in zip, gzip and PNG.
 *
 * @module
 */

/** What each byte does to the remainder, for the reversed polynomial. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder;
});

/** The checksum of some bytes; with a checksum to go on from, that of both parts together. */
export function crc32(bytes: Uint8Array, before = 0): number {
  let remainder = ~before;
  for (let at = 0; at < bytes.length; at++) {
    remainder = (TABLE[(remainder ^ (bytes[at] as number)) & 0xff] as number) ^ (remainder >>> 8);
  }
  return ~remainder >>> 0;
}
