/**
 * The picture for the keyboard and for screen readers: a tree of the same boxes, of which one is active.
 *
 * A tree of a hundred thousand elements would be slow, and nobody hears it whole: it has the active item and its neighbours, each of
 * which says its place among all.
 *
 * @module
 */
import type { GraphModel, Item } from "./model.ts";
import type { Scene } from "./scene.ts";

/** What the outline asks for. */
export interface OutlineEvents {
  readonly select: (item: number) => void;
  readonly toggle: (item: number) => void;
  /** What the colour of a box tells, in words; empty where it tells nothing. */
  readonly colourOf: (item: number) => string;
}

/** The keyboard's way through the boxes. */
export class Outline {
  readonly #tree: HTMLElement;
  readonly #events: OutlineEvents;
  #scene: Scene | undefined;
  #active = -1;

  constructor(tree: HTMLElement, events: OutlineEvents) {
    this.#tree = tree;
    this.#events = events;
    tree.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !this.#press(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** Shows other boxes; the active item stays, if it has one. */
  show(scene: Scene): void {
    this.#scene = scene;
    this.#tree.hidden = scene.items.length === 0;
    this.activate(this.#active);
  }

  /** Makes an item the active one; -1 for none, when the first box is where the keyboard begins. */
  activate(item: number): void {
    const scene = this.#scene;
    if (scene === undefined) return;
    const box = item < 0 ? -1 : (scene.boxOf[item] ?? -1);
    this.#active = box < 0 ? -1 : (scene.items[box] as number);
    const at = Math.max(0, box);
    const near = [at - 1, at, at + 1].filter((it) => it >= 0 && it < scene.items.length);
    this.#tree.replaceChildren(...near.map((it) => this.#itemOf(scene, it, it === box)));
    if (box >= 0) this.#tree.setAttribute("aria-activedescendant", idOf(box));
    else this.#tree.removeAttribute("aria-activedescendant");
  }

  #itemOf(scene: Scene, box: number, isActive: boolean): HTMLElement {
    const { model, items, isOpen } = scene;
    const item = model.items[items[box] as number] as Item;
    const siblings = siblingsOf(scene, item);
    const element = document.createElement("div");
    element.id = idOf(box);
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(model.around(item.index).length + 1));
    element.setAttribute("aria-setsize", String(siblings.length));
    element.setAttribute("aria-posinset", String(siblings.indexOf(item.index) + 1));
    element.setAttribute("aria-selected", String(isActive));
    if (model.children(item.index).length > 0) element.setAttribute("aria-expanded", String(isOpen[box]));
    element.textContent = [spoken(model, item), this.#events.colourOf(item.index)].filter((it) => it !== "").join(", ");
    return element;
  }

  /** Does what a key is for; whether it is for something. */
  #press(key: string): boolean {
    const scene = this.#scene;
    if (scene === undefined || scene.items.length === 0) return false;
    const { model, items, isOpen, boxOf } = scene;
    const box = this.#active < 0 ? -1 : (boxOf[this.#active] as number);
    const go = (to: number | undefined): boolean => {
      if (to !== undefined) this.#events.select(to);
      return true;
    };
    switch (key) {
      case "ArrowDown":
        return go(items[Math.min(items.length - 1, box + 1)]);
      case "ArrowUp":
        return go(items[Math.max(0, box - 1)]);
      case "Home":
        return go(items[0]);
      case "End":
        return go(items.at(-1));
    }
    if (box < 0) return false;
    const item = this.#active;
    const holds = model.children(item).length > 0;
    switch (key) {
      case "ArrowRight":
        if (holds && isOpen[box] !== true) this.#events.toggle(item);
        else if (holds) return go(items[box + 1]);
        return true;
      case "ArrowLeft":
        if (isOpen[box] === true) this.#events.toggle(item);
        else if ((model.items[item] as Item).parent >= 0) return go((model.items[item] as Item).parent);
        return true;
      case "Enter":
      case " ":
        if (holds) this.#events.toggle(item);
        return true;
      case "u":
        return go(neighbour(scene, box, 0));
      case "i":
        return go(neighbour(scene, box, 1));
    }
    return false;
  }
}

/** The item at the other end of the first edge of a box: of one that leaves it, side 0, or that enters it, side 1. */
function neighbour({ edges, items }: Scene, box: number, side: 0 | 1): number | undefined {
  for (let at = 0; at < edges.length; at += 2)
    if (edges[at + side] === box) return items[edges[at + 1 - side] as number];
  return undefined;
}

function siblingsOf({ model, boxOf, items }: Scene, item: Item): readonly number[] {
  const all =
    item.parent >= 0 ? model.children(item.parent) : items.filter((it) => (model.items[it] as Item).parent < 0);
  return all.filter((it) => items[boxOf[it] as number] === it);
}

function spoken(model: GraphModel, { index, kind, title, caption, node, nNodes }: Item): string {
  const value = model.value(index);
  const parts = [title, caption, node === undefined ? `${kind} of ${nNodes} nodes` : node.name, value];
  return parts.filter((it) => it !== "").join(", ");
}

function idOf(box: number): string {
  return `box-${box}`;
}
