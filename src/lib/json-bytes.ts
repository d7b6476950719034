/** Text that JSON writes as it is, a byte for each character. */
const plain = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/**
 * Bytes of a value as JSON, members left out that parsing fills in: `false`, empty lists and objects.
 * Counted instead of written, in a fraction of the time that `JSON.stringify` takes with a replacer.
 */
export function countJsonBytes(value: unknown): number {
  if (Array.isArray(value)) {
    const bytes = value.reduce(
      (sum: number, item) => sum + (isFilledIn(item) ? 4 : countJsonBytes(item)),
      0,
    );
    return 2 + bytes + Math.max(0, value.length - 1);
  }
  if (typeof value === 'object' && value !== null) {
    let bytes = 1;
    for (const key of Object.keys(value)) {
      const member = (value as Record<string, unknown>)[key];
      if (!isFilledIn(member)) bytes += countText(key) + 1 + countJsonBytes(member) + 1;
    }
    return Math.max(2, bytes);
  }
  return typeof value === 'string' ? countText(value) : String(value).length;
}

function isFilledIn(value: unknown): boolean {
  if (typeof value !== 'object') return value === false || value === undefined;
  if (value === null) return false;
  for (const _key in value) return false;
  return true;
}

function countText(text: string): number {
  if (plain.test(text)) return text.length + 2;
  return new TextEncoder().encode(JSON.stringify(text)).length;
}
