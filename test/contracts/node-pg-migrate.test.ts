import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let dir: string;
beforeAll(async () => {
  database = await emptyDatabase();
  dir = await mkdtemp(join(tmpdir(), 'contract-'));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
  await database.drop();
});

const log = { info() {}, warn() {} };
const run = () => migrate(database.url, { log, version: '9.9.9', dir });
const write = (name: string, text: string) => writeFile(join(dir, name), text);

async function rows(text: string): Promise<unknown[]> {
  return (await database.db.query(text)).rows;
}

test('a SQL file is run as a whole, in the first schema given, and recorded by its name', async () => {
  await write(
    '900001_one.sql',
    `-- Least writer: 0.2.0
create table thing (n int);
create function two() returns int language plpgsql as $$ begin return 2; end $$;
insert into thing values (two());
`,
  );
  const { schema } = await run();
  expect(await rows(`select n from ${schema}.thing`)).toEqual([{ n: 2 }]);
  expect(
    await rows(
      `select name, program_version, least_writer, run_on is not null as dated from public.migration where name like '9%'`,
    ),
  ).toEqual([{ name: '900001_one', program_version: '9.9.9', least_writer: '0.2.0', dated: true }]);
});

test('one that fails leaves neither its effects nor its name', async () => {
  await write(
    '900002_two.sql',
    '-- Least writer: 0.2.0\ncreate table half (n int);\nselect 1/0;\n',
  );
  await expect(run()).rejects.toMatchObject({ code: '22012' });
  await write('900002_two.sql', '-- Least writer: 0.2.0\ncreate table half (n int);\n');
  await run();
  expect(await rows(`select name from public.migration where name like '9%' order by id`)).toEqual([
    { name: '900001_one' },
    { name: '900002_two' },
  ]);
});

test('a TypeScript file gets a builder, and may leave the transaction', async () => {
  await write(
    '900003_three.ts',
    `// Least writer: 0.2.0
export async function up(pgm: { noTransaction(): void; db: { query(t: string): Promise<{ rows: object[] }> }; sql(t: string): void }) {
  pgm.noTransaction();
  const { rows } = await pgm.db.query('select 3 as n');
  pgm.sql('create index concurrently half_n on half (n)');
  pgm.sql('insert into thing select n from json_populate_record(null::thing, \\'' + JSON.stringify(rows[0]) + '\\')');
}
`,
  );
  const { schema } = await run();
  expect(await rows(`select n from ${schema}.thing order by n`)).toEqual([{ n: 2 }, { n: 3 }]);
});
