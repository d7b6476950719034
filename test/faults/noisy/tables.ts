import { runOn } from '../../support/template.ts';

/** What the database takes on the disk after a vacuum, in bytes; the write-ahead log is not in it. */
export async function sizeAfterVacuum(url: string): Promise<number> {
  return runOn(url, async (client) => {
    await client.query('vacuum');
    const { rows } = await client.query<{ bytes: string }>(
      'select pg_database_size(current_database()) as bytes',
    );
    return Number(rows[0]?.bytes);
  });
}
