/**
 * What `draftExport` found: each assumption that a program makes and its source does not say.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven, checkList } from "../base/given.ts";

/** What kind of problem was found: `torch.export._draft_export.FailureType`. */
export type FailureType = "MISSING_FAKE_KERNEL" | "DATA_DEPENDENT_ERROR" | "GUARD_ADDED" | "MISMATCHED_FAKE_KERNEL";

/** What kinds of problems are called. */
const TITLES: Readonly<Record<FailureType, string>> = {
  MISSING_FAKE_KERNEL: "Missing fake kernel",
  DATA_DEPENDENT_ERROR: "Data dependent error",
  GUARD_ADDED: "Guard added",
  MISMATCHED_FAKE_KERNEL: "Mismatched fake kernel",
};

/** What is known of a problem. */
export interface FailureData {
  /** The operator whose fake implementation is missing or wrong. */
  readonly op?: string;
  /** What was decided, or guarded. */
  readonly expr?: string;
  /** The user's line that asked. */
  readonly place?: string;
  /** What it is of the example inputs. */
  readonly result?: string;
  /** How often it was asked. */
  readonly occurrences?: number;
  /** Why a fake implementation is wrong. */
  readonly reason?: string;
  /** What was said of the sizes instead. */
  readonly newDynamicShapes?: string;
  /** The change in TypeScript that mends it. */
  readonly fix: string;
}

/** One problem: `FailureReport`. */
export class FailureReport {
  readonly failureType: FailureType;
  readonly data: FailureData;

  constructor(failureType: FailureType, data: FailureData) {
    checkGiven("FailureReport", typeof data === "object" && data !== null, "an object behind the type");
    this.failureType = failureType;
    this.data = data;
  }

  /** The problem as a paragraph, with the line and what to write. */
  print(): string {
    const { op = "", expr = "", place = "", result = "", occurrences = 1, reason = "", fix } = this.data;
    const at = place === "" ? "" : `    This occurred at ${place}\n`;
    switch (this.failureType) {
      case "MISSING_FAKE_KERNEL":
        return `Missing fake kernel.
    torch.ops.${op} is missing a fake kernel implementation.
${at}
    Please write one: ${fix}
`;
      case "DATA_DEPENDENT_ERROR":
        return `Data dependent error.
    When exporting, we were unable to evaluate the value of \`${expr}\`.
    This was encountered ${occurrences} times.
${at}
    As a result, it was specialized to a constant (e.g. \`${result}\` in the 1st occurrence), and asserts were inserted into the graph.

    Please assert this data-dependent assumption in the original code: ${fix}
`;
      case "GUARD_ADDED":
        return `Guard Added.
    A guard was added during tracing, which might've resulted in some incorrect
    tracing or constraint violation error.
    Specifically, this guard was added: ${expr}.
${at}
    Because of this, we have modified the dynamic shapes structure to be the
    following. You can also use Dim.AUTO instead to specify your
    dynamic shapes, and we will automatically infer the dynamism for you.
    dynamicShapes: ${this.data.newDynamicShapes ?? ""}
    ${fix}
`;
      case "MISMATCHED_FAKE_KERNEL":
        return `Mismatched fake kernel.
    torch.ops.${op} has a fake kernel implementation, but it has incorrect behavior, based on the real kernel.
    The reason for the mismatch is: ${reason}.
${at}
    Please correct it: ${fix}
`;
    }
  }

  /** The same as a section of HTML. */
  toHtml(): string {
    const { op, expr, place, result, occurrences, reason, newDynamicShapes, fix } = this.data;
    const rows: readonly (readonly [name: string, value: string | number | undefined])[] = [
      ["Operator", op === undefined ? undefined : `torch.ops.${op}`],
      ["Expression", expr],
      ["Of the example inputs", result],
      ["Asked", occurrences === undefined ? undefined : `${occurrences} times`],
      ["Reason", reason],
      ["Dynamic shapes instead", newDynamicShapes],
      ["At", place],
      ["Fix", fix],
    ];
    const list = rows.flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : `<dt>${name}</dt><dd><code>${escaped(String(value))}</code></dd>`,
    );
    return `<section><h2>${TITLES[this.failureType]}</h2><dl>${list.join("")}</dl></section>`;
  }

  /** For `JSON.stringify`. */
  toJSON(): FailureData & { readonly failureType: FailureType } {
    return { failureType: this.failureType, ...this.data };
  }

  toString(): string {
    return `FailureReport(failure_type=${this.failureType}, data=${JSON.stringify(this.data)})`;
  }
}

/**
 * All problems of an export, as text, as JSON and as a page: `DraftExportReport`.
 *
 * @example
 * ```ts
 * const { report } = draftExport(model, [x]);
 * if (!report.successful()) console.log(String(report));
 * await writeFile("report.html", report.toHtml());
 * ```
 */
export class DraftExportReport {
  readonly failures: readonly FailureReport[];

  constructor(failures: readonly FailureReport[]) {
    checkList("DraftExportReport", "failures", failures);
    this.failures = Object.freeze([...failures]);
  }

  /** Whether nothing was found, so that `exportProgram` gives the same program. */
  successful(): boolean {
    return this.failures.length === 0;
  }

  /** Refused, as in PyTorch. */
  applySuggestedFixes(): never {
    throw fxError("NotImplemented", "Not implemented yet", { help: "each failure has its fix: failure.data.fix" });
  }

  /** For `JSON.stringify`. */
  toJSON(): { readonly successful: boolean; readonly failures: readonly FailureReport[] } {
    return { successful: this.successful(), failures: this.failures };
  }

  /** A page of its own, which loads nothing and runs no script. */
  toHtml(): string {
    const count = this.failures.length;
    const summary = this.successful()
      ? "No issues were found, and the program is sound: <code>exportProgram</code> gives the same one."
      : `${count} ${count === 1 ? "issue was" : "issues were"} found. The program holds for the example inputs only, until they are fixed.`;
    return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Draft export report</title>
<style>${STYLE}</style>
<h1>Draft export report</h1>
<p>${summary}</p>
${this.failures.map((it) => it.toHtml()).join("\n")}
</html>
`;
  }

  toString(): string {
    if (this.successful()) {
      return `##############################################################################################
Congratulations: No issues are found during export, and it was able to soundly produce a graph.
You can now change back to exportProgram()
##############################################################################################
`;
    }
    const line = "#".repeat(99);
    const head = `${line}
WARNING: ${this.failures.length} issue(s) found during export, and it was not able to soundly produce a graph.
Please follow the instructions to fix the errors.
${line}
`;
    return `${head}\n${this.failures.map((it, at) => `${at + 1}. ${it.print()}`).join("\n")}`;
  }
}

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}" +
  "section{border:1px solid #8888;border-radius:6px;padding:0 1rem;margin:1rem 0}h2{font-size:1.1rem}" +
  "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dd{margin:0}code{white-space:pre-wrap;overflow-wrap:anywhere}";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A text as it stands in HTML: sources and expressions are the user's. */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (it) => ENTITIES[it] as string);
}
