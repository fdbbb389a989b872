/**
 * What a module holds, by name.
 *
 * @module
 */
import type { Attribute } from "./module.ts";

/** The attributes of one kind, in order. They are those of now, and of no use after the next change. */
export interface OfKind {
  readonly names: readonly string[];
  readonly attributes: readonly Attribute[];
}

interface Kept {
  readonly names: string[];
  readonly attributes: Attribute[];
  readonly positions: Map<string, number>;
}

/**
 * A `Map` that tells those of one kind without a walk over all: a container asks for its modules with every call of
 * `append` and `at`. What was told once is kept up to date.
 */
export class AttributeMap extends Map<string, Attribute> {
  readonly #kept = new Map<Attribute["kind"], Kept>();

  /** The attributes of a kind. */
  ofKind(kind: Attribute["kind"]): OfKind {
    let kept = this.#kept.get(kind);
    if (kept === undefined) {
      kept = { names: [], attributes: [], positions: new Map() };
      for (const [name, attribute] of this) if (attribute.kind === kind) append(kept, name, attribute);
      this.#kept.set(kind, kept);
    }
    return kept;
  }

  override set(name: string, attribute: Attribute): this {
    const before = this.get(name);
    super.set(name, attribute);
    if (before !== undefined && before.kind !== attribute.kind) {
      // It stands where the other one did.
      this.#kept.clear();
      return this;
    }
    const kept = this.#kept.get(attribute.kind);
    const position = kept?.positions.get(name);
    if (position !== undefined) (kept as Kept).attributes[position] = attribute;
    else if (kept !== undefined) append(kept, name, attribute);
    return this;
  }

  override delete(name: string): boolean {
    this.#kept.clear();
    return super.delete(name);
  }

  override clear(): void {
    this.#kept.clear();
    super.clear();
  }
}

function append(kept: Kept, name: string, attribute: Attribute): void {
  kept.positions.set(name, kept.names.length);
  kept.names.push(name);
  kept.attributes.push(attribute);
}

/** The attributes of a module that are of this kind. */
export function attributesOfKind(
  module: { readonly attributes: ReadonlyMap<string, Attribute> },
  kind: Attribute["kind"],
): OfKind {
  return (module.attributes as AttributeMap).ofKind(kind);
}
