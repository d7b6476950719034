import type { Sql } from '../db/sql.ts';

/** What is in memory at once: so many names, or as many as have so many bytes. */
const pageNames = 1_000;
const pageBytes = 1_048_576;

/** The answer of Get Purposes, specification section 4.5, written as it is read. */
export async function* writePurposeList(
  db: Sql,
  accountId: number,
  timestamp: number,
): AsyncGenerator<string> {
  const ids = await listPurposeIds(db, accountId);
  yield `{"purposeUuids":${JSON.stringify(ids)},"purposeNames":[`;
  for (let from = 0; from < ids.length;) {
    const names = await listNames(db, accountId, ids.slice(from, from + pageNames));
    yield (from === 0 ? '' : ',') + JSON.stringify(names).slice(1, -1);
    from += names.length;
  }
  yield `],"timestamp":${timestamp}}`;
}

/** In the order of their registration. */
async function listPurposeIds(db: Sql, accountId: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select id from purpose where account_id = $1 order by created_at, id',
    [accountId],
  );
  return rows.map(({ id }) => id);
}

/**
 * The names of the first of these, as many as begin within the page's bytes: one at least. One that is
 * removed meanwhile has an empty name, so that the others stay in their places.
 */
async function listNames(db: Sql, accountId: number, purposeIds: string[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `
      select coalesce(name, '') as name
        from (
          select p.name, wanted.place,
                 sum(coalesce(octet_length(p.name), 0)) over (order by wanted.place)
                   - coalesce(octet_length(p.name), 0) as before
            from unnest($2::uuid[]) with ordinality as wanted (id, place)
            left join purpose p on p.id = wanted.id and p.account_id = $1) named
       where before < ${pageBytes}
       order by place`,
    [accountId, purposeIds],
  );
  return rows.map(({ name }) => name);
}
