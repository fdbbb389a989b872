/**
 * Files that people choose, and files that are offered to them.
 *
 * @module
 */

/** A file that people choose; undefined where they choose none. */
export async function chosenFile(accept: string): Promise<File | undefined> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = accept;
  return await new Promise((resolve) => {
    input.addEventListener("change", () => resolve(input.files?.[0]));
    input.addEventListener("cancel", () => resolve(undefined));
    input.click();
  });
}

/** Offers a file for download. */
export function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has begun when the click returns, and reads the address a little later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
