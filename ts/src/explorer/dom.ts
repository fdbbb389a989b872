/**
 * The elements that the parts of the explorer are made of. What comes out of a file is put into them as text.
 *
 * @module
 */

/** An element of a class. */
export function part<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
): HTMLElementTagNameMap[Name] {
  const res = document.createElement(name);
  res.className = className;
  return res;
}

/** A button; what it does is said where its text does not. */
export function button(text: string, onClick?: () => void, about?: string): HTMLButtonElement {
  const res = document.createElement("button");
  res.type = "button";
  res.textContent = text;
  if (about !== undefined) res.title = about;
  if (onClick !== undefined) res.addEventListener("click", onClick);
  return res;
}

/** One of several, by value and text, with what it is about. */
export function choice(about: string, options: Readonly<Record<string, string>>): HTMLSelectElement {
  const res = document.createElement("select");
  res.ariaLabel = about;
  for (const [value, text] of Object.entries(options)) res.append(new Option(text, value));
  return res;
}
