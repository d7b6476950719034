import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createScreen, showRows } from '../../src/cli/command-line.ts';
import { backUpPortable, type OnRows } from '../../src/db/portable/write.ts';
import {
  databaseKinds,
  emptyDatabase,
  testDatabase,
  type TestDatabase,
} from '../support/database.ts';
import { runOn } from '../support/template.ts';
import { runProgram } from '../journeys/process.ts';
import { fillRows } from './many-rows.ts';

const secret = 'a secret that only this test knows, long enough';
const rows = 200_000;

/** Prints the program's peak memory, in kB. */
const tellMemory = `data:text/javascript,process.on('exit', () => console.error('peak', process.resourceUsage().maxRSS))`;

async function run(script: string, args: string[], url: string, dataDir: string) {
  const program = runProgram(
    process.execPath,
    ['--import', tellMemory, `src/cli/${script}.ts`, ...args],
    { env: { DATABASE_URL: url, SECRET: secret, DATA_DIR: dataDir } },
  );
  expect([await program.ended(), program.stdout()]).toEqual([0, expect.any(String)]);
  return Number(/peak (\d+)/.exec(program.stderr())?.[1]) / 1_024;
}

describe.each(databaseKinds)('many rows on %s', (kind) => {
  const dir = mkdtempSync(join(tmpdir(), 'portable-rows-'));
  const databases: TestDatabase[] = [];

  beforeAll(async () => {
    databases.push(await testDatabase(kind), await testDatabase(kind), await emptyDatabase(kind));
    databases.push(await emptyDatabase(kind));
    const [many = '', few = ''] = databases.map(({ url }) => url);
    await runOn(many, (client) => fillRows(client, rows));
    await runOn(few, (client) => fillRows(client, rows / 10));
    await Promise.all([addWide(many, 150_000), addWide(few, 30_000)]);
  });
  afterAll(async () => {
    for (const database of databases) await database.drop();
    rmSync(dir, { recursive: true });
  });

  /** Adds rows of a kilobyte. */
  async function addWide(url: string, count: number): Promise<void> {
    await runOn(url, async (client) => {
      await client.query(
        `insert into rejection (device_id, message_id, item, rejected_at, topic, reason, message, payload)
         select (select min(id) from device), gen_random_uuid(), 0, now(), '', '', '', repeat('x', 1000)
           from generate_series(1, $1::integer)`,
        [count],
      );
      await client.query('analyze');
    });
  }

  // Without streaming, both programs would need 120 MB more.
  test('take no more memory than a fifth of them', async () => {
    const [many = '', few = '', forMany = '', forFew = ''] = databases.map(({ url }) => url);
    const copies = [join(dir, 'many'), join(dir, 'few')] as const;
    const written = await run('backup', ['--portable', copies[0]], many, dir);
    expect(written).toBeLessThan(60 + (await run('backup', ['--portable', copies[1]], few, dir)));
    const read = await run('restore', [copies[0]], forMany, dir);
    expect(read).toBeLessThan(60 + (await run('restore', [copies[1]], forFew, dir)));
    for (const table of ['measurement', 'event', 'event_sense', 'rejection']) {
      const chosen = table === 'event' ? 'device_id, type, ts, key, seq, body::text' : '*';
      const count = `select count(*) as n, sum(hashtextextended(t::text, 0)) as sum
                       from (select ${chosen} from ${table}) t`;
      const [before, after] = await Promise.all(
        [many, forMany].map((url) =>
          runOn(url, async (client) => (await client.query(count)).rows),
        ),
      );
      expect([table, after]).toEqual([table, before]);
    }
  });

  test('are reported as they are copied', async () => {
    const told: Parameters<OnRows>[0][] = [];
    const target = join(dir, 'told');
    const from = { connectionString: databases[0]?.url ?? '', dataDir: dir };
    const { manifest } = await backUpPortable(from, target, {
      onRows: (copied) => void told.push(copied),
    });
    const { tables } = manifest;
    const all = tables.reduce((sum, table) => sum + table.rows, 0);
    expect(all).toBe(rows + 150_000 + 901);
    expect(told.at(-1)?.rows).toBe(all);
    expect(told.filter(({ table }) => table === 'measurement').length).toBeGreaterThan(10);
    expect(told.map(({ rows }) => rows)).toEqual(
      told.map(({ rows }) => rows).toSorted((a, b) => a - b),
    );
    // The expected number is an estimate by the server.
    expect(told[0]?.expected).toBeGreaterThan(0.8 * all);
    expect(told[0]?.expected).toBeLessThan(1.2 * all);
  });
});

describe('the progress line', () => {
  function show(isTTY: boolean, steps: [atMs: number, rows: number][]): string {
    let text = '';
    let now = 0;
    const screen = createScreen({ write: (more) => (text += more), isTTY, columns: 100 });
    const onRows = showRows(screen, () => now);
    for (const [atMs, done] of steps) {
      now = atMs;
      onRows({ table: 'measurement', rows: done, expected: 10_000_000 });
    }
    return text;
  }

  test('changes one line on a terminal, every second', () => {
    const text = show(true, [
      [7_000, 1],
      [7_500, 2],
      [8_000, 500_000],
      [9_000, 1_250_000],
    ]);
    expect(text).toBe(
      '\r500,000 rows, 5 %, 500,000 rows/s, now measurement\u001b[K' +
        '\r1,250,000 rows, 12 %, 625,000 rows/s, now measurement\u001b[K',
    );
  });

  test('prints a line every five seconds elsewhere, without a percentage if it is unknown', () => {
    const text = show(false, [
      [0, 1],
      [4_999, 2],
      [5_000, 10_500_000],
    ]);
    expect(text).toBe('10,500,000 rows, 2,100,000 rows/s, now measurement\n');
  });
});
