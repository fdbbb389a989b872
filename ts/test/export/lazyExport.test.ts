/**
 * Exports by what functions are called with, as torch.export.experimental of PyTorch 2.13 makes them.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import assert from "node:assert";
import { beforeAll, describe, expect, test } from "vitest";
import {
  Dim,
  exportProgram,
  ExportPackage,
  init,
  loadPt2,
  Module,
  nn,
  operator,
  stickyExport,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { full, message, numbers } from "../ported/said.ts";

beforeAll(() => init());

class Doubles extends Module {
  readonly weight = new nn.Parameter(full(2, 3));
  override forward(x: Tensor): Tensor {
    return operator.mul(x, this.weight);
  }
}

function fn(x: Tensor): Tensor {
  return operator.add(x, 1);
}

/** Recorded tensors without their gradients' functions, and graphs without the calls of guards. */
function plain(line: string): string {
  return line
    .replace(/, grad_fn=<\w+>/, "")
    .replace(/\n.*%_guards_fn.*/, "")
    .replace("%x : [num_users=2]", "%x : [num_users=1]");
}

describe("ExportPackage", () => {
  const recorded = experimental("export_package").map(plain);

  test("answers as _ExportPackage does", () => {
    const said: unknown[] = [];
    let models = new ExportPackage();
    const once = models.exporter("fn", fn);
    said.push(
      once(numbers(2)),
      message(() => once(numbers(2))),
    );
    const { fallbacks = [], overloads } = models.methods.get("fn") ?? {};
    said.push(`[${fallbacks.length}, ${overloads?.size}]`);

    models = new ExportPackage();
    const short = (x: Tensor): void => assert(x.size(0) <= 3);
    const exporter = models
      .exporter("double", fn, { fallback: "error" })
      .defineOverload("short", short)
      .defineOverload("long", (x) => x.size(0) > 3 && { args: [{ 0: Dim("n", { min: 4 }) }] });
    said.push(...[2, 5, 7].map((size) => exporter(numbers(size))));
    const named = [...models.methodOverloads()];
    said.push(`[${named.map(([name]) => name).join(", ")}]`, ...named.map(([, program]) => program.graph));
    said.push(message(() => exporter(numbers(3))) === "taken" ? "False" : "True");
    said.push(
      message(() => exporter.defineOverload("short", short)),
      message(() => exporter.defineOverload("2", short)),
    );
    const refusing = models.exporter("none", fn, { fallback: "error" });
    said.push(message(() => refusing(numbers(2))));
    said.push(message(() => models.exporter("none", fn, { fallback: "twice" as "once" })));
    said.push(`[${[...models.methods.keys()].join(", ")}]`);
    said.push(models.exporter("module", new Doubles())(numbers(2, 3)));
    said.push(models.methods.get("module")?.fallbacks[0]?.graph);
    expect(said.map(String)).toEqual(recorded);
  });

  test("is saved as an archive of its programs", () => {
    const models = new ExportPackage();
    expect(() => models.package()).toThrow("a call of an exporter");
    const double = models.exporter("double", new Doubles()).defineOverload("one", (x) => x.size(0) === 1 && null);
    double(numbers(1, 3));
    double(numbers(2, 3));
    const { exportedPrograms } = loadPt2(models.package());
    expect([...exportedPrograms.keys()].toSorted()).toEqual(["double", "double__one"]);
    const again = exportedPrograms.get("double")?.module()(numbers(2, 3));
    expect(String(again)).toBe(String(numbers(2, 3).mul(2)));
    models.exporter("double__one", fn)(numbers(2));
    expect(() => models.package()).toThrow("two programs of the package are named `double__one`");
  });

  test("keyword arguments are those of forward, and specs have the module", () => {
    class Scaled extends Module {
      readonly least = 1;
      override forward(x: Tensor, { by }: { by: Tensor }): Tensor {
        return x.mul(by);
      }
    }
    const models = new ExportPackage();
    const scaled = models.exporter("scaled", new Scaled()).defineOverload("all", function (this: Scaled, x: Tensor) {
      return x.size(0) > this.least && { x: { 0: Dim("n", { min: 2 }) }, by: null };
    });
    const x = numbers(4);
    expect(String(scaled(x, { by: torch.ones(1).add(1) }))).toBe(String(x.mul(2)));
    expect(String(models.methods.get("scaled")?.overloads.get("all")?.graph)).toContain("placeholder[target=by]");
  });

  test("a spec that fails otherwise is no answer", () => {
    const exporter = new ExportPackage().exporter("fn", fn).defineOverload("bad", () => {
      throw new TypeError("no such field");
    });
    expect(() => exporter(numbers(2))).toThrow("no such field");
  });
});

describe("stickyExport", () => {
  const recorded = experimental("sticky_export").map(plain);

  test("answers as _sticky_export does", () => {
    const said: unknown[] = [];
    let model = new Doubles();
    let forward = stickyExport(model);
    model.forward = forward;
    expect(forward.exportedArtifact).toBeUndefined();
    said.push(model(numbers(2, 3)));
    const first = forward.exportedArtifact;
    said.push(first?.unlift().graph, model(numbers(4, 3)), forward.exportedArtifact === first ? "True" : "False");
    model = new Doubles();
    forward = stickyExport(model, { dynamicShapesCallback: () => ({ x: { 0: Dim.DYNAMIC } }) });
    model.forward = forward;
    said.push(model(numbers(2, 3)), forward.exportedArtifact?.module()(numbers(4, 3)));
    model = new Doubles();
    forward = stickyExport(model, { dynamicShapesCallback: () => ({ y: { 0: Dim.DYNAMIC } }) });
    model.forward = forward;
    said.push(message(() => model(numbers(2, 3))) === "taken" ? "False" : "True");
    said.push(Object.getOwnPropertyDescriptor(model, "forward")?.value === forward ? "True" : "False");
    expect(said.map(String)).toEqual(recorded);
  });

  test("the module can be exported again as it was", () => {
    const model = new Doubles();
    const forward = stickyExport(model);
    const before = String(exportProgram(model, [numbers(2, 3)]).graph);
    forward(numbers(2, 3));
    expect(Object.hasOwn(model, "forward")).toBe(false);
    expect(String(exportProgram(model, [numbers(2, 3)]).graph)).toBe(before);
  });
});
