import { runOn } from '../../support/template.ts';

/** The database's size on disk after a vacuum, in bytes, without the write-ahead log. */
export async function sizeAfterVacuum(url: string): Promise<number> {
  return runOn(url, async (client) => {
    await client.query('vacuum');
    const { rows } = await client.query<{ bytes: string }>(
      'select pg_database_size(current_database()) as bytes',
    );
    return Number(rows[0]?.bytes);
  });
}
