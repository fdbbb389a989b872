/**
 * Notes about nodes as files have them: texts, as `torch.export.save` writes them. A trace notes the modules around a node
 * (`nn_module_stack`) as a map and a function (`torch_fn`) as two names.
 *
 * @module
 */
import { NodeSource, type NodeSourceJson } from "../graph/nodeSource.ts";

/** The text of a note; undefined for what stays with the graph that has it. */
export function noteText(key: string, note: unknown): string | undefined {
  if (typeof note === "string") return note;
  if (key === "nn_module_stack") return note instanceof Map ? stackText(note as ModuleStack) : undefined;
  if (key === "torch_fn" || key === "source_fn_stack") return namesText(note);
  if (key === "from_node") return sourcesText(note);
  return key === "custom" && typeof note === "object" && note !== null ? jsonText(note) : undefined;
}

/** What a text says; the text itself where it is of another form. */
export function noteOf(key: string, text: string): unknown {
  if (key === "torch_fn") {
    const names = text.split(";");
    return names.length === 2 ? names : text;
  }
  if (key === "custom") return jsonOf(text);
  if (key === "from_node") return sourcesOf(text) ?? text;
  if (key !== "nn_module_stack") return text;
  const stack: ModuleStack = new Map(
    text.split(";").map((entry) => {
      const [name = "", path = "", type = ""] = partsOf(entry);
      return [name, [path, type]];
    }),
  );
  return stackText(stack) === text ? stack : text;
}

/** What is between the commas of an entry; those in brackets and quotes belong to a name, such as `L['self'].parts['a,b']`. */
function partsOf(entry: string): string[] {
  const parts: string[] = [];
  let [start, depth, quote] = [0, 0, ""];
  for (let at = 0; at < entry.length; at++) {
    const char = entry.charAt(at);
    if (quote !== "") {
      if (char === "\\") at++;
      else if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if ("[(".includes(char)) depth++;
    else if (")]".includes(char)) depth--;
    else if (char === "," && depth === 0) {
      parts.push(entry.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, entry.slice(start)];
}

/** Names with semicolons between them, each of which may be a list; undefined where one is no text, such as a function. */
function namesText(note: unknown): string | undefined {
  if (!Array.isArray(note)) return undefined;
  return note.every((it) => isText(it) || (Array.isArray(it) && it.every(isText)))
    ? note.map(String).join(";")
    : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** Where a node comes from, as `json.dumps` of Python writes it. */
function sourcesText(note: unknown): string | undefined {
  if (!Array.isArray(note) || !note.every((it) => it instanceof NodeSource)) return undefined;
  return pythonJson(note.map((it) => it.toDict()));
}

/** The sources that a text says; undefined where it would be written otherwise. */
function sourcesOf(text: string): readonly NodeSource[] | undefined {
  try {
    const sources = (JSON.parse(text) as NodeSourceJson[]).flatMap((it) => NodeSource.fromDict(it) ?? []);
    return sourcesText(sources) === text ? sources : undefined;
  } catch {
    return undefined;
  }
}

function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([key, it]) => `${pythonJson(key)}: ${pythonJson(it)}`)
      .join(", ")}}`;
  }
  const text = JSON.stringify(value);
  return text.replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

type ModuleStack = Map<string, readonly [path: string, type: string]>;

function stackText(stack: ModuleStack): string {
  return Array.from(stack, ([name, module]) => [name, ...module].join(",")).join(";");
}

/** The object of which this is the text that is written; the text itself where it is none. */
function jsonOf(text: string): unknown {
  try {
    const note: unknown = JSON.parse(text);
    return typeof note === "object" && note !== null && JSON.stringify(note) === text ? note : text;
  } catch {
    return text;
  }
}

function jsonText(note: object): string | undefined {
  try {
    return JSON.stringify(note, (_, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
  } catch {
    // It holds itself, or something that JSON has no form for.
    return undefined;
  }
}
