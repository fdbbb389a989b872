import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { load, torch } from "../../src/index.ts";
import { unflatten } from "../../src/export/unflatten.ts";
import type { GraphModule } from "../../src/fx/graphModule.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { largestDifference, refusal } from "./fixtures.ts";

const root = new URL("../../../tests/fixtures/unflattened/", import.meta.url);
const names = readdirSync(root).filter((name) => !name.endsWith(".json"));

const open = async (name: string) => await load(new Uint8Array(readFileSync(new URL(`${name}/model.pt2`, root))));

/** The tensors in a result. */
function tensorsIn(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(tensorsIn) : [];
}

describe("unflatten", () => {
  it.each(names)("gives the modules of %s, which give what the program gives", async (name) => {
    const program = await open(name);
    const args = () => (program.clone().exampleInputs?.[0] ?? []) as Tensor[];
    using flat = program.module();
    const modules = unflatten(program);
    for (let run = 0; run < 2; run++) {
      const [wanted, given] = [tensorsIn(flat(...args())), tensorsIn(modules.forward(...args()))];
      expect(given.length).toBe(wanted.length);
      wanted.forEach((want, at) => expect(largestDifference(want, given[at] as Tensor)).toBeLessThan(1e-6));
    }
  });

  it("checks the shapes of inputs, until it is told not to", async () => {
    const modules = unflatten(await open("sized"));
    const wrong = torch.zeros(3, 6);
    expect((await refusal(() => modules.forward(wrong))).reason).toContain("x.size()[1] == 4, and it is 6");
    modules.checkInputConstraints = false;
    expect(tensorsIn(modules.forward(wrong)).length).toBe(2);
    modules.checkInputConstraints = true;
    expect(tensorsIn(modules.forward(torch.zeros(7, 4))).length).toBe(2);
  });

  it("has the hierarchy of the module, whose parts can be replaced", async () => {
    const program = await open("nested");
    const modules = unflatten(program);
    const inner = modules.graphModule.getSubmodule("inner") as GraphModule;
    expect([...modules.graphModule.namedChildren()].map(([name]) => name)).toEqual(["inner", "outer"]);
    expect(String(inner.graph)).toContain("call_module[target=0]");
    expect(modules.graphModule.stateDict().has("outer.b.0.weight")).toBe(true);
  });

  it("asks the adapter for inputs that are structured otherwise", async () => {
    const program = await open("nested");
    const [x, y] = (program.exampleInputs?.[0] ?? []) as Tensor[];
    const refused = await refusal(() => unflatten(program).forward([x, y]));
    expect(refused.reason).toMatch(/^There is no flat args adapter specified\. Are you sure/);
    const adapted = unflatten(program, { adapt: ({ args }) => args.flat() });
    expect(tensorsIn(adapted.forward([x, y])).length).toBe(2);
    const few = unflatten(program, { adapt: () => [x] });
    expect((await refusal(() => few.forward([x, y]))).reason).toMatch(/^Flat args adaption failed/);
  });
});
