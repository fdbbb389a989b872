/**
 * What a draft of an export reports, and what PyTorch 2.13 does: `tests/oracle/gen_draft_export.py` has the same programs.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Condition,
  Dim,
  DraftExportReport,
  draftExport,
  type DynamicShapes,
  FailureReport,
  guard,
  init,
  Module,
  operator,
  type Size,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { type Programs, type Say, text } from "../ported/said.ts";

beforeAll(() => init());

const { eq, gt, lt } = operator as unknown as Readonly<Record<"eq" | "gt" | "lt", (a: Size, b: Size) => Condition>>;
const item = (x: Tensor): Size => x.item() as unknown as Size;
const float = (x: Tensor): Tensor => x.to("float32");

function told(
  say: Say,
  forward: (x: Tensor) => Tensor,
  example: Tensor,
  dynamicShapes: DynamicShapes = null,
): DraftExportReport {
  class M extends Module {
    override forward(x: Tensor): Tensor {
      return forward(x);
    }
  }
  const { program, report } = draftExport(new M(), [example], {}, { dynamicShapes, checkSources: false });
  say(report.successful());
  for (const { failureType, data } of report.failures) {
    say([failureType, data.op ?? data.expr, data.result ?? null, data.occurrences ?? null].map(text).join(" "));
  }
  try {
    say(program.module()(example));
  } catch (error) {
    // The engine refuses kernels that give what was not said.
    say((error as Error).name);
  }
  return report;
}

const custom = (): Readonly<Record<"f" | "g", (x: Tensor) => Tensor>> =>
  (torch.ops as unknown as { draft_test: Record<"f" | "g", (x: Tensor) => Tensor> }).draft_test;

const programs: Programs = {
  nothing(say) {
    told(say, (x) => x.sin(), torch.ones([2]), { x: { 0: Dim("n") } });
  },
  decision_on_an_item(say) {
    told(say, (x) => (guard(eq(item(x), 3)) ? float(x).sin() : float(x).cos()), tensor(3));
    told(say, (x) => (guard(gt(item(x), 3)) ? float(x).sin() : float(x).cos()), tensor(3));
  },
  decision_on_a_count(say) {
    const forward = (x: Tensor): Tensor => (guard(gt(x.nonzero().size(0), 2)) ? x.sin() : x.cos());
    told(say, forward, tensor([1, 0, 2], { dtype: "float32" }));
  },
  two_decisions(say) {
    const forward = (x: Tensor): Tensor => {
      const n = item(x);
      return guard(gt(n, 2)) && guard(lt(n, 9)) ? torch.ones([4]) : torch.zeros([4]);
    };
    told(say, forward, tensor(3));
  },
  sizes_that_are_not_so(say) {
    const n = { x: { 0: Dim("n") } };
    told(say, (x) => (guard(gt(x.size(0), 2)) ? x.sin() : x.cos()), torch.ones([4]), n);
    told(say, (x) => (guard(eq(x.size(0), 4)) ? x.sin() : x.cos()), torch.ones([4]), n);
  },
  no_fake(say) {
    torch.library.define("draft_test::f", "(Tensor x) -> Tensor");
    torch.library.impl("draft_test::f", "cpu", (x: Tensor) => x.add(1));
    told(say, (x) => custom().f(x).sin(), torch.ones([2]));
  },
  a_wrong_fake(say) {
    torch.library.define("draft_test::g", "(Tensor x) -> Tensor");
    torch.library.impl("draft_test::g", "cpu", (x: Tensor) => torch.cat([x, x]));
    torch.library.registerFake("draft_test::g", (x: Tensor) => torch.emptyLike(x));
    told(say, (x) => custom().g(x).sin(), torch.ones([2]));
  },
};

const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/export/draft.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

describe("as draft_export reports:", () => {
  test.each(Object.keys(recorded))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(text(it)));
    expect(said).toEqual(name === "a_wrong_fake" ? recorded[name]?.with(2, "OperatorError") : recorded[name]);
  });
});

test("a report says the line and the fix, as text, as JSON and as a page", () => {
  const report = told(
    () => {},
    (x) => (guard(eq(item(x), 3)) ? float(x).sin() : float(x).cos()),
    tensor(3),
  );
  expect(String(report)).toContain("WARNING: 1 issue(s) found during export");
  expect(String(report)).toMatch(/This occurred at .*draftExport\.test\.ts:\d+/);
  expect(JSON.parse(JSON.stringify(report))).toMatchObject({
    successful: false,
    failures: [{ failureType: "DATA_DEPENDENT_ERROR", expr: "Eq(u0, 3)", fix: "torch._check(operator.eq(u0, 3))" }],
  });
  const page = report.toHtml();
  expect(page).toContain("<h2>Data dependent error</h2>");
  expect(page).toContain("<dt>Fix</dt><dd><code>torch._check(operator.eq(u0, 3))</code></dd>");
  expect(page).toMatch(/1 issue was found/);
  expect(() => report.applySuggestedFixes()).toThrow("Not implemented yet");
});

test("what a page says of a user's code is text", () => {
  const report = new DraftExportReport([new FailureReport("GUARD_ADDED", { expr: '<b> & "c"', fix: "a < b" })]);
  expect(report.toHtml()).toContain("<code>&lt;b&gt; &amp; &quot;c&quot;</code>");
  expect(new DraftExportReport([]).toHtml()).toContain("No issues were found");
});
