/** What is of the native command alone. */
import { expect, test, vi } from "vitest";
import { main } from "../../src/cli/main.ts";

test("onnx is refused, and it is said which command has it", async () => {
  const problem = vi.spyOn(console, "error").mockImplementation(() => {});
  try {
    expect(await main(["onnx", "a.pt2", "a.onnx"])).toBe(2);
    expect(problem.mock.calls.join("\n")).toContain("onnx is of the native command alone");
  } finally {
    problem.mockRestore();
  }
});
