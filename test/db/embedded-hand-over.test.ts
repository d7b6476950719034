import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { superuserUrl } from '../support/embedded.ts';
import { longOnly, shortOnly } from '../support/share.ts';
import { openClient, runOn } from '../support/template.ts';
import { leaveEarlierServer } from './earlier-cluster.ts';
import { silent } from './earlier.ts';
import { listNotOwned, listSuperusers } from './not-owned.ts';

const dir = makeTemporaryDir();
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true });
});

const start = (dataDir: string) => startEmbeddedDatabase({ dataDir, log: silent });
const notOwnedIn = async (dataDir: string) => runOn(await superuserUrl(dataDir), listNotOwned);
const postmaster = (dataDir: string) => readPostmasterFile(join(dataDir, 'postgresql'));

/** The error's `code`; null if something accepts the connection. */
async function whyNoConnection(port: number): Promise<string | null> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  } finally {
    socket.destroy();
  }
}

function startElsewhere(dataDir: string): ChildProcess {
  const script = new URL('../support/embedded-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, dataDir], { stdio: 'ignore' });
  children.push(child);
  return child;
}

describe.each(shortOnly(['a data directory that a version before 0.3.0 worked on']))('%s', () => {
  const dataDir = join(dir, 'earlier');

  it('whose server was left running is taken over: no port, another role, the same rows', async () => {
    const earlier = await leaveEarlierServer(dataDir);
    await runOn(earlier.url('sensorium'), (client) =>
      client.query(
        `insert into account (email, password_hash) values ('me@example.com', 'x');
         create table public.operators (n int)`,
      ),
    );
    expect(await whyNoConnection(earlier.port)).toBeNull();
    const database = await start(dataDir);
    expect(await whyNoConnection(earlier.port)).toBe('ECONNREFUSED');
    expect((await postmaster(dataDir))?.address.port).not.toBe(earlier.port);
    // Objects that an operator created elsewhere stay theirs.
    expect(new Set(await notOwnedIn(dataDir))).toEqual(
      new Set(['public.operators', 'public._operators']),
    );
    await migrate(database.connectionString, { log: silent });
    await runOn(database.connectionString, async (client) => {
      const { rows } = await client.query('select current_user as role, email from account');
      expect(rows).toEqual([{ role: 'sensorium_service', email: 'me@example.com' }]);
    });
    await database.stop();
  });

  it('is handed over once more after the superuser created something there', async () => {
    const first = await start(dataDir);
    await runOn(await superuserUrl(dataDir), async (client) => {
      await client.query('drop table public.operators');
      const { rows } = await client.query<{ name: string }>(
        'select name from public.sensorium_schema',
      );
      const schema = rows[0]?.name ?? '';
      await client.query(
        `create table ${schema}."Odd name" (id serial, n bigint generated always as identity);
         create table ${schema}.parted (n int) partition by range (n);
         create table ${schema}.part partition of ${schema}.parted for values from (1) to (2);
         create sequence ${schema}.numbers;
         create type ${schema}.mood as enum ('well');
         create type ${schema}.pair as (a int, b ${schema}.mood);
         create type ${schema}.span as range (subtype = float8);
         create domain ${schema}.positive as int check (value > 0);
         create view ${schema}.shown as select 1 as n;
         create materialized view ${schema}.stored as select 1 as n;
         create function ${schema}.f(${schema}.mood, int[]) returns int language sql return 1;
         create procedure ${schema}.p() language sql as 'select 1';
         create aggregate ${schema}.total(int) (sfunc = int4pl, stype = int);
         create statistics ${schema}.both on id, n from ${schema}."Odd name";
         create table graphile_worker.extra ();
         create schema sensorium_9_9_9`,
      );
    });
    await first.stop();
    const second = await start(dataDir);
    expect(await notOwnedIn(dataDir)).toEqual([]);
    await second.stop();
  });
});

describe.each(longOnly(['such a data directory']))('%s', () => {
  it('is refused while its service runs, which continues, and without its password', async () => {
    const dataDir = join(dir, 'used');
    const earlier = await leaveEarlierServer(dataDir);
    const before = await postmaster(dataDir);
    const service = openClient(`${earlier.url('postgres')}?application_name=sensorium%2042`);
    await service.connect();
    await service.query('select pg_advisory_lock(7199)');
    await expect(start(dataDir)).rejects.toThrow('another Sensorium (process 42) is using it');
    await service.query('select 1');
    expect(await postmaster(dataDir)).toEqual(before);
    await service.end();
    const file = join(dataDir, 'database-password');
    const password = readFileSync(file);
    writeFileSync(file, 'of another one');
    await expect(start(dataDir)).rejects.toThrow("is not its database's");
    writeFileSync(file, password);
    await (await start(dataDir)).stop();
  });

  it('is handed over by the next start if the previous one was killed in the middle', async () => {
    const dataDir = join(dir, 'killed');
    const earlier = await leaveEarlierServer(dataDir);
    // It waits after the first table, which is then handed over but not committed.
    await runOn(earlier.url('sensorium'), (client) =>
      client.query(
        `create table public.passed ();
         create function public.hold() returns event_trigger language plpgsql as $$
         begin
           if not exists (select from public.passed) then
             perform set_config('application_name', 'held', false);
             perform pg_sleep(3600);
           end if;
         end $$;
         create event trigger hold on ddl_command_end when tag in ('ALTER TABLE')
           execute function public.hold()`,
      ),
    );
    const before = await runOn(earlier.url('sensorium'), listSuperusers);
    await earlier.stop();
    const child = startElsewhere(dataDir);
    await vi.waitFor(
      async () => {
        const held = `select from pg_stat_activity where application_name = 'held'`;
        const found = await runOn(await superuserUrl(dataDir), (client) => client.query(held));
        expect(found.rowCount).toBe(1);
      },
      { timeout: 60_000, interval: 20 },
    );
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    // The role exists, and owns nothing but the database.
    expect(await runOn(await superuserUrl(dataDir), listSuperusers)).toEqual(before);
    await runOn(await superuserUrl(dataDir), (client) =>
      client.query('insert into public.passed default values'),
    );
    // The server does not notice at once that the killed process is gone, so its session is ended.
    const lines: string[] = [];
    const log = { info: () => undefined, warn: (_: object, line: string) => lines.push(line) };
    const database = await startEmbeddedDatabase({ dataDir, log });
    expect(lines).toEqual([expect.stringMatching(/^Ended a session .* \(held, active\)/)]);
    await runOn(await superuserUrl(dataDir), (client) =>
      client.query(`drop event trigger hold; drop function public.hold; drop table public.passed`),
    );
    expect(await notOwnedIn(dataDir)).toEqual([]);
    await database.stop();
  });
});

it('creates the database if a first start was killed before creating it', async () => {
  const dataDir = join(dir, 'without');
  const first = await start(dataDir);
  await runOn(await superuserUrl(dataDir, 'postgres'), (client) =>
    client.query('drop database sensorium'),
  );
  await first.stop();
  const second = await start(dataDir);
  await migrate(second.connectionString, { log: silent });
  expect(await notOwnedIn(dataDir)).toEqual([]);
  await second.stop();
});
