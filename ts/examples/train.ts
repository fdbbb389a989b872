/**
 * Training in TypeScript: a program that PyTorch exported becomes a joint program of its loss and its gradients, which an
 * optimizer trains from PyTorch's first weights. The digits are scikit-learn's.
 */
import { readFileSync } from "node:fs";
import { init, load, optim, readSafetensors, type Tensor, tidy, TrainingModule, torch } from "tracefx";

await init();

const fixtures = new URL("../../tests/fixtures/", import.meta.url);
const bytes = (name: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(new URL(name, fixtures)));

/** What PyTorch reaches from the same weights, with the same images in the same order. */
interface Recorded {
  epochs: number;
  batch: number;
  optimizers: Record<"SGD" | "Adam", { accuracy: number; losses: number[] }>;
}
const recorded = JSON.parse(new TextDecoder().decode(bytes("joint/digits/meta.json"))) as Recorded;

/** Images of floats from 0 to 1, and labels. */
function digits(name: string): { images: Tensor; labels: Tensor } {
  const { tensors } = readSafetensors(bytes(name));
  const [images, labels] = [tensors.get("images") as Tensor, tensors.get("labels") as Tensor];
  return { images: images.to(torch.float32).div(16), labels: labels.to(torch.int64) };
}
const train = digits("joint/digits/train.safetensors");
const test = digits("programs/_digits/test.safetensors");

const OPTIMIZERS = {
  SGD: (parameters: Iterable<Tensor>) => new optim.SGD(parameters, { lr: 0.1, momentum: 0.9, nesterov: true }),
  Adam: (parameters: Iterable<Tensor>) => new optim.Adam(parameters, { lr: 0.01 }),
};

for (const name of ["SGD", "Adam"] as const) {
  const program = await load(bytes("joint/digits/model.pt2"));
  using model = new TrainingModule(program.exportForwardBackward({ jointLossIndex: 0 }));
  const optimizer = OPTIMIZERS[name](model.parameters());
  const losses: number[] = [];
  for (let epoch = 0; epoch < recorded.epochs; epoch += 1) {
    for (let start = 0; start < train.labels.numel(); start += recorded.batch) {
      const found = tidy(() => {
        const { loss } = model.forwardBackward(
          train.images.narrow(0, start, recorded.batch),
          train.labels.narrow(0, start, recorded.batch),
        );
        optimizer.step();
        optimizer.zeroGrad();
        return loss.item() as number;
      });
      losses.push(found);
    }
  }

  // The program for answers is another one, with the same names for the state.
  const answering = await load(bytes("joint/digits/eval.pt2"));
  const state = model.stateDict();
  answering.loadStateDict(new Map([...answering.stateDict.keys()].map((key) => [key, state.get(key) as Tensor])));
  const logits = answering.module()(test.images) as Tensor;
  const accuracy = logits.argmax(1).eq(test.labels).to(torch.float32).mean().item() as number;

  const theirs = recorded.optimizers[name];
  const first = losses.slice(0, 4).map((loss, at) => Math.abs(loss - (theirs.losses[at] as number)));
  console.log(`${name}: the first losses are PyTorch's: ${Math.max(...first) < 1e-3}`);
  console.log(`${name}: the loss falls below a tenth: ${(losses.at(-1) as number) < 0.1 * (losses[0] as number)}`);
  console.log(`${name}: within a point of PyTorch's accuracy: ${Math.abs(accuracy - theirs.accuracy) <= 0.01}`);
}
