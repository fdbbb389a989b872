/**
 * Which of the public names of torch.fx and torch.export are here: `docs/api-coverage.md`.
 *
 * The names are recorded (`tests/fixtures/api/names.tsv`), and ours are read from the sources. A name that is spelled in camel
 * case here is found by itself; `answers.tsv` has what is called otherwise, what has no meaning here, and what is missing although
 * something of another module has its name. Members are looked for in the class of the same name, or of the one that it is said to be
 * renamed to. Answers that name what is not there are refused, and so are those that answer nothing.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { type Member, membersOfClass, publicNames } from "../../ts/test/surface.ts";

/** A public name of PyTorch. */
interface PublicName {
  readonly kind: "class" | "function" | "method" | "property" | "variable";
  readonly module: string;
  readonly name: string;
}

/** What is told of a name: where it is, why it has no meaning here, or that it is missing. */
type Answer =
  | { readonly state: "there"; readonly text: string }
  | { readonly state: "not applicable"; readonly text: string }
  | { readonly state: "missing"; readonly text: string };

/** A line of `answers.tsv`. */
interface GivenAnswer {
  readonly pattern: string;
  readonly answer: Answer;
  /** Whether it tells the other name of the same class, which has the members. */
  readonly isRenaming: boolean;
  /** How many names it answers. */
  count: number;
}

const STATES = { ours: "there", renamed: "there", none: "not applicable", missing: "missing" } as const;

/** The lines of a table beside this file or among the fixtures, without comments. */
function table(url: URL): string[][] {
  const lines = readFileSync(url, "utf8").split("\n");
  return lines.filter((it) => it !== "" && !it.startsWith("#")).map((it) => it.split("\t"));
}

function recordedNames(): PublicName[] {
  return table(new URL("../fixtures/api/names.tsv", import.meta.url)).map(
    ([kind, module, name]) => ({ kind, module, name }) as PublicName,
  );
}

/** Ours by name, and the members of our classes. */
class Surface {
  readonly #names = publicNames();
  readonly #members = new Map<string, ReadonlyMap<string, Member>>();

  has(name: string): boolean {
    if (this.#names.has(name)) return true;
    const dot = name.lastIndexOf(".");
    return dot > 0 && this.#membersOf(name.slice(0, dot)).has(name.slice(dot + 1));
  }

  #membersOf(name: string): ReadonlyMap<string, Member> {
    const found = this.#names.get(name);
    let res = this.#members.get(name);
    if (res === undefined) {
      res = found === undefined ? new Map() : membersOfClass(found);
      this.#members.set(name, res);
    }
    return res;
  }
}

/** A name of Python in the spelling of JavaScript: classes and constants keep theirs. */
function camelCase(name: string): string {
  if (/^[A-Z]/.test(name)) return name;
  return name.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names of ours that an answer begins with. */
function namesIn(text: string): string[] {
  return (text.split(": ")[0] as string).split(", ");
}

function givenAnswers(surface: Surface): GivenAnswer[] {
  return table(new URL("answers.tsv", import.meta.url)).map(([pattern = "", verb = "", text = ""]) => {
    const state = STATES[verb as keyof typeof STATES];
    if (state === undefined) throw new Error(`answers.tsv says ${JSON.stringify(verb)} of ${pattern}`);
    if (state !== "missing" && text === "") throw new Error(`answers.tsv does not say why: ${pattern}`);
    if (state === "there") {
      for (const name of namesIn(text)) {
        if (!surface.has(name)) throw new Error(`answers.tsv names ${name} for ${pattern}, which is not there`);
      }
    }
    return { pattern, answer: { state, text }, isRenaming: verb === "renamed", count: 0 };
  });
}

/** The answers to all names, those of PyTorch's modules in their order. */
function answered(): Map<PublicName, Answer> {
  const surface = new Surface();
  const given = givenAnswers(surface);
  const exact = new Map(given.filter((it) => !it.pattern.endsWith("*")).map((it) => [it.pattern, it]));
  const prefixes = given
    .filter((it) => it.pattern.endsWith("*"))
    .toSorted((a, b) => b.pattern.length - a.pattern.length);
  const res = new Map<PublicName, Answer>();
  for (const it of recordedNames()) {
    const qualified = `${it.module}.${it.name}`;
    const [owner, member] = it.name.split(".") as [string, string?];
    const ofOwner = exact.get(`${it.module}.${owner}`);
    // Members of another class that serves in its place are others, although they may have the same names.
    const owners = ofOwner?.isRenaming ? namesIn(ofOwner.answer.text) : [camelCase(owner)];
    const ours = member === undefined ? owners : owners.map((name) => `${name}.${camelCase(member)}`);
    const there = ours.find((name) => surface.has(name));
    const isRenamed = member !== undefined && ofOwner?.isRenaming && there !== undefined;
    const byPrefix = isRenamed ? undefined : prefixes.find((other) => qualified.startsWith(other.pattern.slice(0, -1)));
    const found = exact.get(qualified) ?? byPrefix;
    if (found !== undefined) found.count += 1;
    const bySpelling: Answer = there === undefined ? { state: "missing", text: "" } : { state: "there", text: there };
    res.set(it, found?.answer ?? bySpelling);
  }
  const idle = given.filter((it) => it.count === 0).map((it) => it.pattern);
  if (idle.length > 0) throw new Error(`answers.tsv answers nothing with ${idle.join(", ")}`);
  return res;
}

/** The text of `docs/api-coverage.md`. */
export function coverage(): string {
  const answers = answered();
  const modules = new Map<string, [PublicName, Answer][]>();
  for (const [name, answer] of answers) {
    const rows = modules.get(name.module);
    if (rows === undefined) modules.set(name.module, [[name, answer]]);
    else rows.push([name, answer]);
  }
  const isMember = (it: PublicName): boolean => it.kind === "method" || it.kind === "property";
  const count = (answer: string, ofMembers: boolean): number =>
    [...answers].filter(([name, it]) => it.state === answer && isMember(name) === ofMembers).length;
  const states = [...new Set(Object.values(STATES))];
  const total = (ofMembers: boolean): number => [...answers.keys()].filter((it) => isMember(it) === ofMembers).length;

  const lines = [
    "<!-- Printed by `npm run -s api-coverage` from tests/fixtures/api/names.tsv, tests/coverage/answers.tsv and ts/src. -->",
    "# Coverage of PyTorch's interface",
    "",
    "Every public name of `torch.fx` and `torch.export` of PyTorch 2.13, by the module that defines it, and what it is called in the",
    "package `tracefx`. *Not applicable* says why nothing is there; what behaves otherwise is in [compat.md](compat.md).",
    "",
    `| | ${states.join(" | ")} | all |`,
    "|---|--:|--:|--:|--:|",
    `| classes, functions, variables | ${states.map((it) => count(it, false)).join(" | ")} | ${total(false)} |`,
    `| methods and properties | ${states.map((it) => count(it, true)).join(" | ")} | ${total(true)} |`,
  ];
  for (const [module, rows] of modules) {
    lines.push("", `## ${module}`, "", "| name | here |", "|---|---|", ...rowsOf(rows));
  }
  return `${lines.join("\n")}\n`;
}

/** The rows of a module. Names that follow each other and have one reason are one row, since a reason is read once. */
function rowsOf(rows: readonly [PublicName, Answer][]): string[] {
  const res: { names: string[]; answer: Answer }[] = [];
  for (const [{ name }, answer] of rows) {
    const last = res.at(-1);
    const isSame = last?.answer.state === answer.state && last.answer.text === answer.text;
    if (isSame && answer.state !== "there") last.names.push(name);
    else res.push({ names: [name], answer });
  }
  return res.map(({ names, answer }) => `| ${names.map((it) => `\`${it}\``).join(", ")} | ${told(answer)} |`);
}

function told({ state, text }: Answer): string {
  const safe = text.replaceAll("|", "\\|");
  if (state === "missing") return text === "" ? "**missing**" : `**missing**: ${safe}`;
  if (state === "not applicable") return `not applicable: ${safe}`;
  const [names = "", ...note] = safe.split(": ");
  const quoted = names.split(", ").map(quotedName);
  return note.length === 0 ? quoted.join(", ") : `${quoted.join(", ")}: ${note.join(": ")}`;
}

/** A name with what it is imported from, where that is not the package itself: `draw:FxGraphDrawer`. */
function quotedName(name: string): string {
  const [own = "", from] = name.split(":").toReversed();
  return from === undefined ? `\`${own}\`` : `\`${own}\` of \`tracefx/${from}\``;
}
