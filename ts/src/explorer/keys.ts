/**
 * The keys that hold in the whole element; those of the tree are the outline's.
 *
 * @module
 */
import type { Viewer } from "./viewer.ts";

/** What keys are for, besides moving the picture. */
export interface KeyEvents {
  readonly search: () => void;
  readonly nextDifference: () => void;
  readonly edit: () => void;
  readonly clear: () => void;
}

/** How far the picture moves with a key, in pixels. */
const STEP = 80;

const MOVES: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-STEP, 0],
  ArrowRight: [STEP, 0],
  ArrowUp: [0, -STEP],
  ArrowDown: [0, STEP],
};

/** Does what a key is for, unless somebody types. */
export function pressKey(event: KeyboardEvent, viewer: Viewer, events: KeyEvents): void {
  const typing = [HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement];
  const isTyping = typing.some((it) => event.target instanceof it);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  const move = MOVES[event.key];
  if (move !== undefined) {
    if (!event.shiftKey) return;
    viewer.pan(...move);
  } else if (!pressLetter(event.key, viewer, events)) return;
  event.preventDefault();
}

function pressLetter(key: string, viewer: Viewer, events: KeyEvents): boolean {
  switch (key) {
    case "/":
      events.search();
      return true;
    case "f":
      viewer.fit();
      return true;
    case "+":
    case "=":
      viewer.zoom(1.25);
      return true;
    case "-":
      viewer.zoom(0.8);
      return true;
    case "n":
      events.nextDifference();
      return true;
    case "e":
      events.edit();
      return true;
    case "Escape":
      events.clear();
      return true;
  }
  return false;
}
