/** A device whose memory is JavaScript's: it copies, and runs nothing. */

/** A buffer of {@link fakeDevice}. */
export class FakeBuffer {
  readonly size: number;
  readonly usage: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  nDestroyed = 0;

  constructor({ size, usage }: { readonly size: number; readonly usage: number }) {
    this.size = size;
    this.usage = usage;
    this.bytes = new Uint8Array(size);
  }

  async mapAsync(): Promise<void> {
    // As soon as the device answers.
  }

  getMappedRange(start: number, length: number): ArrayBuffer {
    return this.bytes.slice(start, start + length).buffer;
  }

  unmap(): void {
    // What was mapped is a copy.
  }

  destroy(): void {
    this.nDestroyed += 1;
  }
}

/** A device as a class, as all hosts have it: a plain object would be options. */
class FakeDevice {
  readonly limits = {};
  readonly features = new Set<string>();
  readonly buffers: FakeBuffer[] = [];
  readonly lost: Promise<object>;
  readonly queue = {
    writeBuffer: (to: FakeBuffer, start: number, bytes: Uint8Array) => to.bytes.set(bytes, start),
    submit() {
      // Copies are done when they are told.
    },
  };

  constructor(lost: Promise<object>) {
    this.lost = lost;
  }

  pushErrorScope(): void {
    // It refuses nothing.
  }

  async popErrorScope(): Promise<null> {
    return null;
  }

  async createComputePipelineAsync(): Promise<undefined> {
    return undefined;
  }

  createBuffer(descriptor: { readonly size: number; readonly usage: number }): FakeBuffer {
    const made = new FakeBuffer(descriptor);
    this.buffers.push(made);
    return made;
  }

  createCommandEncoder(): object {
    return {
      copyBufferToBuffer(from: FakeBuffer, at: number, to: FakeBuffer, start: number, length: number) {
        to.bytes.set(from.bytes.subarray(at, at + length), start);
      },
      finish: () => undefined,
    };
  }
}

/** A device, the buffers that it made, and how it is lost. */
export function fakeDevice() {
  let lose!: (why: object) => void;
  const lost = new Promise<object>((resolve) => {
    lose = resolve;
  });
  const device = new FakeDevice(lost);
  return {
    device: device as unknown as GPUDevice,
    buffers: device.buffers,
    lose: () => lose({ message: "", reason: "destroyed" }),
  };
}
