/** Which versions of this program brought a major version of PostgreSQL; `last` is null for today's. */
export type Major = { postgresql: string; first: string; last: string | null };

/** For a new major version add a row, and set `last` of the one before it. */
export const majors: readonly Major[] = [{ postgresql: '18', first: '0.1.0', last: null }];

/** Who can open what PostgreSQL `written` has written, for a program that brings another one. */
export function describeMajor(written: string, known: readonly Major[] = majors): string {
  const found = known.find(({ postgresql }) => postgresql === written);
  if (found)
    return `version ${found.last ?? found.first} of Sensorium still opens it (${rangeOf(found)} bring PostgreSQL ${written}). With that version run \`npm run backup -- --portable <directory>\`, then with this one \`npm run restore -- <directory>\` into a new DATA_DIR.`;
  const newest = Math.max(...known.map(({ postgresql }) => Number(postgresql)));
  return Number(written) > newest
    ? 'a later version of Sensorium wrote it: start that one.'
    : 'no version of Sensorium brought that one: whoever made this directory has to look after it.';
}

function rangeOf({ first, last }: Major): string {
  return last === null ? `${first} and later` : `${first} to ${last}`;
}
