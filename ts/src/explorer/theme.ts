/**
 * The colours of pictures, light and dark. Text has a contrast of 4.5 to 1 at least on what it stands on.
 *
 * @module
 */

/** The colours of a picture. */
export interface Theme {
  readonly background: string;
  readonly box: string;
  readonly open: readonly string[];
  readonly border: string;
  readonly text: string;
  readonly muted: string;
  readonly wire: string;
  readonly accent: string;
  readonly found: string;
  /** The stripes that tell operators apart. */
  readonly stripes: readonly string[];
  readonly input: string;
  readonly output: string;
  readonly weight: string;
  /** What boxes of no and of most heat are filled with. */
  readonly heat: readonly [cold: Rgb, hot: Rgb];
  /** What marks what one program has alone, and what differs. */
  readonly differences: Readonly<Record<Difference, string>>;
}

/** Red, green and blue, from 0 to 255. */
export type Rgb = readonly [red: number, green: number, blue: number];

/** How a box differs from the one that it is matched with. */
export type Difference = "added" | "removed" | "changed";

/** The colours on a light page. */
export const LIGHT: Theme = {
  background: "#f8f9fb",
  box: "#ffffff",
  open: ["#eef1f6", "#e4e9f1", "#dae1ec"],
  border: "#a9b2c0",
  text: "#1b2330",
  muted: "#556070",
  wire: "#8793a5",
  accent: "#0b5fc1",
  found: "#b35900",
  stripes: ["#3b76c4", "#b5562f", "#4d8b3a", "#8a52b0", "#b08a1e", "#2b8c8c", "#b8477f", "#6b7480"],
  input: "#d9f0dd",
  output: "#fbe3d4",
  weight: "#f3eec9",
  heat: [
    [255, 255, 255],
    [255, 138, 92],
  ],
  differences: { added: "#c9efcf", removed: "#fbd2d2", changed: "#fbeab8" },
};

/** The colours on a dark page. */
export const DARK: Theme = {
  background: "#12161d",
  box: "#212834",
  open: ["#191f29", "#1d2430", "#222b39"],
  border: "#4b586b",
  text: "#e8edf4",
  muted: "#a4b0c0",
  wire: "#6b7a90",
  accent: "#6cb2ff",
  found: "#ffb15c",
  stripes: ["#6ea6ee", "#e58a63", "#82c46d", "#bd8be0", "#dcbb54", "#5fc2c2", "#e680b3", "#9aa5b3"],
  input: "#1f4228",
  output: "#4c3122",
  weight: "#413c1c",
  heat: [
    [33, 40, 52],
    [176, 58, 22],
  ],
  differences: { added: "#1f4a2a", removed: "#5a2528", changed: "#4f431a" },
};

/** The colour of a share of the heat, from 0 to 1. */
export function heatColor({ heat: [cold, hot] }: Theme, share: number): string {
  const parts = cold.map((it, at) => Math.round(it + ((hot[at] as number) - it) * share));
  return `rgb(${parts.join(",")})`;
}

/** The stripe of an operator: the same for each node of the same target. */
export function stripeOf({ stripes }: Theme, target: string): string {
  let hash = 0;
  for (let at = 0; at < target.length; at++) hash = (31 * hash + target.charCodeAt(at)) >>> 0;
  return stripes[hash % stripes.length] as string;
}
