/**
 * Bytes in memory that nobody shares, as `Blob`, `Response` and `WebAssembly.compile` take them.
 *
 * @module
 */

/**
 * What `Uint8Array.of` gives: `Uint8Array<ArrayBuffer>` where TypeScript knows arrays by their buffers, and `Uint8Array` before
 * that, up to TypeScript 5.6.
 */
export type Bytes = ReturnType<Uint8ArrayConstructor["of"]>;
