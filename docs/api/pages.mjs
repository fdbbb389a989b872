/**
 * What typedoc is not told by the files themselves: a page is called as its first heading says, stands in the group of its folder, and
 * links to what is no page lead to the repository.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Converter } from "typedoc";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const REPOSITORY = "https://github.com/tracefx/tracefx/blob/main";

/** The groups of pages by folder, from the root of the repository. */
const GROUPS = { docs: "Guides", "docs/decisions": "Decisions", benches: "Measurements", "": "The project" };

/** Called by typedoc. */
export function load(/** @type {import("typedoc").Application} */ app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, /** @type {import("typedoc").DocumentReflection} */ page) => {
    const folder = dirname(page.project.files.getReflectionPath(page) ?? "");
    const group = GROUPS[/** @type {keyof typeof GROUPS} */ (relative(ROOT, folder))];
    if (group === undefined) throw new Error(`docs/api/pages.mjs names no group of ${folder}`);
    page.frontmatter["group"] = group;
    const [first] = page.content;
    const title = /^(?:\s|<!--.*?-->)*# (.+)$/m.exec(first?.text ?? "")?.[1];
    if (title !== undefined) page.name = title;
    page.content = page.content.map((part) =>
      part.kind === "relative-link" ? inRepository(page, part, folder) : part,
    );
  });
}

/** A link as it is where it leads to a page or a picture, and else to the repository. */
function inRepository(
  /** @type {import("typedoc").DocumentReflection} */ page,
  /** @type {import("typedoc").RelativeLinkDisplayPart} */ part,
  /** @type {string} */ folder,
) {
  const path = resolve(folder, part.text.replace(/#.*/, ""));
  if (!existsSync(path)) throw new Error(`${folder}: ${part.text} leads nowhere`);
  // The repository's own README is no page: the site begins with that of docs.
  const isPage = path.endsWith(".md") && relative(ROOT, dirname(path)) in GROUPS && path !== resolve(ROOT, "README.md");
  if (isPage || /\.(png|svg)$/.test(path)) return part;
  // What has a place in the site is not copied into it.
  page.project.files.registerReflectionPath(path, page.project);
  return { kind: /** @type {const} */ ("text"), text: `${REPOSITORY}/${relative(ROOT, path)}` };
}
