/**
 * The samples of the README and of `docs/`: each block of TypeScript, with what stands around it where it is a fragment.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";

/** What a block needs in order to be a module. */
interface Surroundings {
  /** What stands before it. */
  readonly before?: string;
  /** What stands around it, with `$` in its place. */
  readonly around?: string;
  /** Why it is not run; without this it is a whole program, and runs. */
  readonly notRun?: string;
}

/** A block as a module. */
export interface Sample extends Surroundings {
  /** Its file and number: `docs/export.md 2`. */
  readonly name: string;
  readonly code: string;
  /** What it says that it prints, where each line that prints says so. */
  readonly prints?: string;
}

const FRAGMENT = "a fragment, of values that are not there";

const GM = "const gm = symbolicTrace((x: Tensor) => torch.relu(torch.relu(x)));";

/** The blocks that are not whole programs. */
const SURROUNDINGS: Readonly<Record<string, Surroundings>> = {
  "README.md 2": { before: `import { symbolicTrace } from "tracefx";\n${GM}` },
  "README.md 3": { notRun: "there is no model.pt2" },
  "README.md 4": { notRun: "there is no model.pt2" },
  "docs/coming-from-torch-fx.md 1": {
    before: 'import { float, init, nn, operator, symbolicTrace, type Tensor, torch } from "tracefx";\nawait init();',
  },
  "docs/coming-from-torch-fx.md 2": {
    before: `import { symbolicTrace, type Tensor, torch } from "tracefx";
const gm = symbolicTrace((x: Tensor) => torch.add(x, 1));`,
  },
  "docs/coming-from-torch-fx.md 3": {
    before: `import { type Kwargs, symbolicTrace, type Tensor, torch, Transformer } from "tracefx";
const gm = symbolicTrace((x: Tensor) => torch.sigmoid(x));`,
  },
  "docs/coming-from-torch-fx.md 4": {
    before: `import { compile, init, symbolicTrace, type Tensor, torch } from "tracefx";
await init();
const gm = symbolicTrace((x: Tensor) => torch.relu(x));
const x = torch.randn(3);`,
  },
  "docs/coming-from-torch-fx.md 5": {
    before: `import { GraphModule, nn, type Tensor, Tracer, wrap } from "tracefx";
class Attention extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.relu();
  }
}
const model = new nn.Sequential(new Attention());`,
  },
  "docs/control-flow.md 1": { notRun: "the settings of a build" },
  "docs/export.md 2": {
    before: 'import { cond, nn, type Tensor } from "tracefx";',
    around: `class Net extends nn.Module {
  a = new nn.Linear(2, 2);
  b = new nn.Linear(2, 2);
  override forward(x: Tensor): Tensor {
    $
    return y;
  }
}
new Net();`,
    notRun: FRAGMENT,
  },
  "docs/export.md 3": {
    before: 'import { nn, type Tensor, torch } from "tracefx";',
    around: `class Net extends nn.Module {
  teacher = new nn.Linear(2, 2);
  layer = new nn.Linear(2, 2);
  override forward(x: Tensor): readonly Tensor[] {
    $
    return [target, y];
  }
}
new Net();`,
    notRun: FRAGMENT,
  },
  "docs/export.md 4": {
    before: `import { exportProgram, type nn, type Tensor, unflatten } from "tracefx";
declare const model: nn.Module;
declare const image: Tensor;
declare const SmallerEncoder: new () => nn.Module;`,
    notRun: FRAGMENT,
  },
  "docs/export.md 5": {
    before: `import { Dim, ExportPackage, type nn, type Tensor } from "tracefx";
declare const decoder: nn.Module;
declare const prompt: Tensor;
declare const generate: (decode: (...args: never[]) => unknown, prompt: Tensor) => void;`,
    notRun: FRAGMENT,
  },
  "docs/export.md 6": {
    before: `import { Dim, exportProgram, type nn, type Tensor } from "tracefx";
declare const net: nn.Module;
declare const image: Tensor;`,
    notRun: FRAGMENT,
  },
  "docs/export.md 7": {
    before: `import { Dim, exportProgram, type nn, readSafetensors, saveTo, torch } from "tracefx";
declare const gpt2Block: () => nn.Module;
declare const bytes: Uint8Array;`,
    notRun: FRAGMENT,
  },
  "docs/export.md 8": {
    before: `import { constantFold, type ExportedProgram, fuseBatchNorm } from "tracefx";
declare const program: ExportedProgram;`,
    notRun: FRAGMENT,
  },
  "docs/hosts.md 2": { notRun: "there is no model.pt2" },
  "docs/passes.md 2": {
    before: `import { init, Rule, RuleSet, symbolicTrace, type Tensor, torch } from "tracefx";
await init();
const gm = symbolicTrace((x: Tensor) => torch.neg(torch.neg(x)));`,
  },
  "docs/passes.md 3": {
    before: 'import { anyOf, init, optional, SubgraphMatcher, type Tensor, torch } from "tracefx";\nawait init();',
  },
  "docs/passes.md 4": {
    before: `import { FakeTensorProp, replacePatternWithFilters, symbolicTrace, type Tensor, torch } from "tracefx";
const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.relu(x.add(y)));`,
    notRun: "it shows a refusal",
  },
  "docs/training.md 1": {
    before: 'import type { Tensor } from "tracefx";\ndeclare const batches: readonly (readonly [Tensor, Tensor])[];',
    notRun: FRAGMENT,
  },
};

/** All samples, in the order of the files. */
export function samples(): Sample[] {
  const root = new URL("../../", import.meta.url);
  const files = ["README.md", ...readdirSync(new URL("docs", root)).map((it) => `docs/${it}`)];
  const found = files
    .filter((it) => it.endsWith(".md"))
    .flatMap((file) => {
      const text = readFileSync(new URL(file, root), "utf8").replaceAll("\r\n", "\n");
      return Array.from(text.matchAll(/^```ts\n(.*?)^```/gms), ([, block = ""], at): Sample => {
        const name = `${file} ${at + 1}`;
        const { before = "", around = "$", notRun } = SURROUNDINGS[name] ?? {};
        const code = `${before}\n${around.replace("$", () => block)}\nexport {};\n`;
        const prints = printsOf(block);
        return { name, code, ...(notRun !== undefined && { notRun }), ...(prints !== undefined && { prints }) };
      });
    });
  const names = new Set(found.map(({ name }) => name));
  const gone = Object.keys(SURROUNDINGS).find((it) => !names.has(it));
  if (gone !== undefined) throw new Error(`there is no sample ${gone} any more`);
  return found;
}

/** The comments behind the lines that print; undefined where a line that prints has none. */
function printsOf(block: string): string | undefined {
  const printing = block.split("\n").filter((it) => it.includes("console.log("));
  const said = printing.map((it) => /; \/\/ (.*)$/.exec(it)?.[1]);
  if (said.length === 0 || said.includes(undefined)) return undefined;
  return said.map((it) => `${it}\n`).join("");
}
