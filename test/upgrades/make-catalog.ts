import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readOptionsOrExit } from '../../src/cli/command-line.ts';
import { findTimescaleBinDir, startThrowAwayCluster } from '../support/cluster.ts';
import { projectDir } from '../journeys/process.ts';
import { runOn } from '../support/template.ts';
import { readCatalog } from './catalog.ts';
import { catalogFile } from './fixture.ts';

// Records the schema that a version creates, beside its fixture. It runs that version's own migrations.

const usage = `Usage: npm run catalog [-- --of DIRECTORY]

Migrates an empty database of each kind with this version, or with the one in DIRECTORY, and writes the resulting catalog
to test/upgrades/fixtures/<version>. DIRECTORY is a checkout with its node_modules.`;
const tree = readOptionsOrExit(usage, { of: { type: 'string' } }, ({ of }) =>
  resolve(of ?? projectDir),
);

type Version = {
  migrate(url: string, options: { log: object }): Promise<{ kind: string; schema: string }>;
};

if (findTimescaleBinDir() === null) throw new Error('This machine has no TimescaleDB.');
const { version } = JSON.parse(await readFile(join(tree, 'package.json'), 'utf8')) as {
  version: string;
};
const { migrate } = (await import(pathToFileURL(join(tree, 'src/db/migrate.ts')).href)) as Version;
for (const kind of ['postgresql', 'timescaledb'] as const) {
  const cluster = await startThrowAwayCluster({ timescaledb: kind === 'timescaledb' });
  try {
    const log = { info: () => undefined, warn: console.warn };
    const { kind: made, schema } = await migrate(cluster.url(), { log });
    if (made !== kind) throw new Error(`Expected ${kind}, and found ${made}.`);
    const file = catalogFile(version, kind);
    await writeFile(file, await runOn(cluster.url(), (client) => readCatalog(client, schema)));
    console.log(`Wrote ${file}.`);
  } finally {
    await cluster.remove();
  }
}
