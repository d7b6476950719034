/** `word` → `Word`. */
export const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Text as it stands in HTML, also within an attribute in double quotes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** CSV as RFC 4180 has it. */
export const csvType = 'text/csv';
/** A line of JSON for each. */
export const ndjsonType = 'application/x-ndjson';

/** `list` cut into slices of `size` elements; the last one has what is left. None for an empty list. */
export function slicesOf<T>(list: readonly T[], size: number): T[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, n) => list.slice(n * size, (n + 1) * size));
}

const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a text is a UUID in lower case, as the database writes one (RFC 9562 section 4), of any version. */
export function isUuid(text: string): boolean {
  return pattern.test(text);
}
