/**
 * Finds items by name, operator, target and shape.
 *
 * @module
 */
import type { GraphModel, Item } from "./model.ts";

/**
 * The items of which a text has all words, in the order of the program. Names, operators, targets, classes of modules and values count;
 * capitals do not.
 *
 * @example
 * ```ts
 * search(model, "conv2d f32[1, 64"); // the convolutions whose results begin with these sizes
 * ```
 */
export function search(model: GraphModel, text: string): number[] {
  const words = wordsOf(text);
  if (words.length === 0) return [];
  return model.items.filter((it) => matches(model, it, words)).map((it) => it.index);
}

function matches(model: GraphModel, item: Item, words: readonly string[]): boolean {
  const { node, id, title, caption, index } = item;
  const own = `${id}\n${title}\n${caption}\n${node?.op ?? item.kind}\n${node?.target ?? ""}`.toLowerCase();
  return words.every((it) => own.includes(it) || model.value(index).toLowerCase().includes(it));
}

/** The words of a text; what is in brackets is one of them, such as `[1, 64, 8, 8]`. */
function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[^\s[]*\[[^\]]*\]?|\S+/g) ?? [];
}
