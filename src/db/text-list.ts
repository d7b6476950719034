/** Words of ours, never anybody's input, as a list in SQL: `('pending', 'sent')`; partial indexes need literals. */
export function textList(words: readonly string[]): string {
  return `(${words.map((word) => `'${word.replaceAll("'", "''")}'`).join(', ')})`;
}
