/** `word` → `Word`. */
export const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Escapes text for HTML, including attributes in double quotes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** CSV (RFC 4180). */
export const csvType = 'text/csv';
/** One JSON document per line. */
export const ndjsonType = 'application/x-ndjson';

/** Cuts `list` into slices of `size` elements; the last slice has the rest. No slices for an empty list. */
export function slicesOf<T>(list: readonly T[], size: number): T[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, n) => list.slice(n * size, (n + 1) * size));
}

const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether the text is a UUID of any version in lower case, as the database writes it (RFC 9562 section 4). */
export function isUuid(text: string): boolean {
  return pattern.test(text);
}
