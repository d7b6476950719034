import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import pg from 'pg';
import { to } from 'pg-copy-streams';
import { StartError } from '../../start-error.ts';
import { version } from '../../version.ts';
import { describeStorage, readStorage } from '../storage.ts';
import { estimateRows, listSequences, listTables, replaced, type Table } from './write.ts';
import { writePortableManifest, type CopiedTable, type PortableManifest } from './manifest.ts';
import { listRunMigrations, requireKnownMigrations } from './migrations.ts';
import { countRows, type OnRows } from './rows.ts';
import { findTables, withSession } from './session.ts';

export type CopyOptions = {
  /** Called after each piece. */
  onRows?: OnRows;
  /** Told what is done when all rows are there; it may take a while. */
  onStep?: (step: string) => void;
  signal?: AbortSignal;
};

/**
 * Writes all rows of a database into an empty directory, as they are at one moment, while others go on
 * writing. The server keeps for that long what they replace. Throws a StartError for a database that
 * this program has not made, or a later version of it.
 */
export async function writeTables(
  connectionString: string,
  dir: string,
  { onRows = () => undefined, signal }: CopyOptions = {},
): Promise<PortableManifest> {
  return withSession(connectionString, async (client) => {
    await findTables(client);
    await client.query('begin isolation level repeatable read read only');
    // oxlint-disable-next-line no-restricted-globals -- a command: when the copy was made
    const createdTs = Date.now();
    const migrations = await listRunMigrations(client);
    await refuseUnknown(migrations);
    const found = await listTables(client);
    const expected = await estimateRows(client, found);
    const tables: CopiedTable[] = [];
    let before = 0;
    for (const table of found) {
      const tell = (rows: number) => onRows({ table: table.name, rows: before + rows, expected });
      const copied = await writeTable(client, table, dir, tell, signal);
      before += copied.rows;
      tables.push(copied);
    }
    const manifest: PortableManifest = {
      format: 1,
      createdTs,
      programVersion: version,
      source: describeStorage(await readStorage(client)),
      migrations,
      tables,
      // They belong to no transaction: read now, each is at least as far as any row that was copied.
      sequences: await listSequences(client),
    };
    await client.query('commit');
    await writePortableManifest(dir, manifest);
    return manifest;
  });
}

async function refuseUnknown(migrations: string[]): Promise<void> {
  if (migrations.length === 0)
    throw new StartError('The database has no tables of Sensorium: there is nothing to copy.');
  await requireKnownMigrations(migrations, {
    of: 'The database',
    hint: 'Copy it with the version that runs on it.',
  });
}

/** A hypertable's own COPY would copy nothing: its rows are in its chunks, which a select reads. */
async function writeTable(
  client: pg.Client,
  { name, columns }: Table,
  dir: string,
  onRows: (rows: number) => void,
  signal: AbortSignal | undefined,
): Promise<CopiedTable> {
  const chosen = columns.map((column) => {
    const instead = replaced[name]?.[column];
    return `${instead === undefined ? '' : `${instead} as `}${pg.escapeIdentifier(column)}`;
  });
  const rows = countRows(onRows);
  const hash = createHash('sha256');
  const file = `${name}.copy.zst`;
  await pipeline(
    client.query(
      to(`copy (select ${chosen.join(', ')} from ${pg.escapeIdentifier(name)}) to stdout`),
    ),
    rows.pass,
    createZstdCompress(),
    async function* (pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        hash.update(piece);
        yield piece;
      }
    },
    createWriteStream(join(dir, file), { mode: 0o600, flush: true }),
    { signal },
  );
  const { size: bytes } = await stat(join(dir, file));
  return { name, columns, file, rows: rows.count(), bytes, sha256: hash.digest('hex') };
}
