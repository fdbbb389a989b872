/** Notes as texts, and back. */
import { expect, test } from "vitest";
import { noteOf, noteText } from "../../src/wire/notes.ts";

test("a note that was set as an object comes back as one", () => {
  for (const note of [{ stage: 1, deep: { list: [1, null, "x"] } }, [1, 2], {}]) {
    expect(noteOf("custom", noteText("custom", note) ?? "")).toEqual(note);
  }
});

test("custom texts that would be written in another way stay texts", () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  for (const text of ["", "1", "null", '"a"', '{"a": 1}', '{"b":1,"a":1.0}', '{"2":0,"1":0}', '{"a":1', deep]) {
    const note = noteOf("custom", text);
    expect(note === text).toBe(true);
    expect(noteText("custom", note) === text).toBe(true);
  }
});

test("commas in brackets and quotes belong to the names of modules", () => {
  const text = "L__self__,,my.Net;L['self'].parts['a,b)'],parts['a,b)'],my.Pair[int, str]";
  const stack = new Map([
    ["L__self__", ["", "my.Net"]],
    ["L['self'].parts['a,b)']", ["parts['a,b)']", "my.Pair[int, str]"]],
  ]);
  expect(noteOf("nn_module_stack", text)).toEqual(stack);
  expect(noteText("nn_module_stack", stack)).toBe(text);
});

test("stacks of another form stay texts", () => {
  for (const text of ["", "a", "a,b", "a,b,c,d", "a,b,c;a,b,c", "a],b,c", "a,'b,c", "a,b,c;"]) {
    expect(noteOf("nn_module_stack", text)).toBe(text);
  }
});

test("functions that a note holds have no text", () => {
  expect(noteText("source_fn_stack", ["linear,torch.nn.Linear", "relu,torch.relu"])).toBe(
    "linear,torch.nn.Linear;relu,torch.relu",
  );
  expect(noteText("source_fn_stack", [["linear", "torch.nn.Linear"]])).toBe("linear,torch.nn.Linear");
  expect(noteText("source_fn_stack", [["linear", () => 1]])).toBeUndefined();
});
