/**
 * Files that people choose, and files that are offered to them.
 *
 * @module
 */

/** Files that people choose; none where they choose none. */
export async function chosenFiles(accept: string): Promise<readonly File[]> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = accept;
  input.multiple = true;
  return await new Promise((resolve) => {
    input.addEventListener("change", () => resolve([...(input.files ?? [])]));
    input.addEventListener("cancel", () => resolve([]));
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
