/**
 * Counts what a page tells WebGPU, whoever tells it.
 *
 * @module
 */

/**
 * What WebGPU was told.
 *
 * @typedef {object} Counts
 * @property {number} dispatches
 * @property {number} submissions
 * @property {number} bytesUp what the CPU wrote, by `writeBuffer` or into buffers that were mapped
 * @property {number} bytesDown what the CPU read of buffers that were mapped
 * @property {number} bytesCopied what commands copied from buffer to buffer
 * @property {number} readbacks how often a buffer was mapped to be read
 */

/** `GPUMapMode.READ`, of which the types of TypeScript know nothing. */
const FOR_READING = 1;

/** @returns {Counts} */
const none = () => ({ dispatches: 0, submissions: 0, bytesUp: 0, bytesDown: 0, bytesCopied: 0, readbacks: 0 });

/**
 * Counts from now on, in all devices of the page. Each call gives what was counted since the last one.
 *
 * @returns {() => Counts}
 */
export function counter() {
  let counts = none();
  /** Buffers that were mapped to be read; others that are mapped are to be written. @type {WeakSet<GPUBuffer>} */
  const read = new WeakSet();

  before(GPUQueue.prototype, "submit", () => (counts.submissions += 1));
  before(GPUQueue.prototype, "writeBuffer", (_, __, ___, data, start = 0, size = undefined) => {
    // The elements of typed arrays are counted, and the bytes of what has none.
    const n = size ?? (data.length ?? data.byteLength) - start;
    counts.bytesUp += n * (data.BYTES_PER_ELEMENT ?? 1);
  });
  before(GPUComputePassEncoder.prototype, "dispatchWorkgroups", () => (counts.dispatches += 1));
  before(GPUComputePassEncoder.prototype, "dispatchWorkgroupsIndirect", () => (counts.dispatches += 1));
  before(GPUCommandEncoder.prototype, "copyBufferToBuffer", (_, source, ...given) => {
    // The two offsets may be left out.
    const size = typeof given[0] === "number" ? given[3] : given[1];
    counts.bytesCopied += size ?? source.size;
  });
  before(GPUBuffer.prototype, "mapAsync", (buffer, mode) => {
    if ((mode & FOR_READING) === 0) return;
    counts.readbacks += 1;
    read.add(buffer);
  });
  before(GPUBuffer.prototype, "getMappedRange", (buffer, start = 0, size = buffer.size - start) => {
    counts[read.has(buffer) ? "bytesDown" : "bytesUp"] += size;
  });
  before(GPUBuffer.prototype, "unmap", (buffer) => read.delete(buffer));
  return () => {
    const found = counts;
    counts = none();
    return found;
  };
}

/** Has a method say whose it is and what it is given, before it is called. */
function before(
  /** @type {any} */ prototype,
  /** @type {string} */ name,
  /** @type {(self: any, ...args: any[]) => unknown} */ see,
) {
  const method = prototype[name];
  prototype[name] = function (/** @type {any[]} */ ...args) {
    see(this, ...args);
    return method.apply(this, args);
  };
}
