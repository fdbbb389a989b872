/**
 * Notes about nodes as files have them: texts, as `torch.export.save` writes them. A trace notes the modules around a node
 * (`nn_module_stack`) as a map and a function (`torch_fn`) as two names.
 *
 * @module
 */

/** The text of a note; undefined for what stays with the graph that has it. */
export function noteText(key: string, note: unknown): string | undefined {
  if (typeof note === "string") return note;
  if (key === "nn_module_stack") return note instanceof Map ? stackText(note as ModuleStack) : undefined;
  if (key === "torch_fn" || key === "source_fn_stack")
    return Array.isArray(note) ? note.map(String).join(";") : undefined;
  return key === "custom" && typeof note === "object" && note !== null ? jsonText(note) : undefined;
}

/** What a text says; the text itself where it is of another form. */
export function noteOf(key: string, text: string): unknown {
  if (key === "torch_fn") {
    const names = text.split(";");
    return names.length === 2 ? names : text;
  }
  if (key !== "nn_module_stack") return text;
  const stack: ModuleStack = new Map(
    text.split(";").map((entry) => {
      const [name = "", path = "", ...type] = entry.split(",");
      return [name, [path, type.join(",")]];
    }),
  );
  return stackText(stack) === text ? stack : text;
}

type ModuleStack = Map<string, readonly [path: string, type: string]>;

function stackText(stack: ModuleStack): string {
  return Array.from(stack, ([name, module]) => [name, ...module].join(",")).join(";");
}

function jsonText(note: object): string | undefined {
  try {
    return JSON.stringify(note, (_, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
  } catch {
    // It holds itself, or something that JSON has no form for.
    return undefined;
  }
}
