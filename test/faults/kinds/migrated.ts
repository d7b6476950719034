import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from '../../../src/db/migrate.ts';
import { silent } from '../../db/earlier.ts';
import { runOn, schema } from '../../support/template.ts';
import { makeLaterMigrations } from '../../support/tomorrow.ts';
import { ask, expectHolds, runFor, timeToAck } from '../fault.ts';
import type { Fault } from '../fault.ts';
import type { World } from '../world.ts';

const laterVersion = '99.0.0';

/** A migration that this version can work with, and one that it cannot. */
const goesOn = {
  name: '900000_goes-on',
  leastWriter: '0.2.0',
  sql: 'alter table device add column of_later_versions text',
};
const locksOut = {
  name: '900001_locks-out',
  leastWriter: laterVersion,
  sql: 'alter table measurement rename column val to measured',
};

/** A later version migrates the database under the running service. */
export const migratedUnder: Fault = {
  name: 'migrated-under',
  promise:
    'the service continues if the migration allows it; otherwise it stores and acknowledges nothing more, and exits with 3',
  short: { times: 1, awaySeconds: 0 },
  long: { times: 10, awaySeconds: 0 },
  async inflict(world, { times }) {
    let slowest = 0;
    const before = await countRejections(world);
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      await migrateTo(world, [goesOn]);
      await timeToAck(world);
      await runFor(world, 500);
      expectHolds(world.service.isRunning(), 'a migration that allows it does not end the service');

      const asking = askUntilRefused(world);
      const since = performance.now();
      await migrateTo(world, [goesOn, locksOut]);
      slowest = Math.max(slowest, performance.now() - since);
      const left = await readWritten(world);
      const acknowledged = world.load.counts().acknowledged;
      const code = await world.service.ended();
      expectHolds(code === 3, `exit 3 when locked out, was ${code}`);
      expectHolds((await readWritten(world)) === left, 'nothing is written after the lock-out');
      expectHolds(await asking, 'REST answers 503 or not at all after the lock-out');
      // Acknowledgements of earlier writes may still arrive.
      expectHolds(
        world.load.counts().acknowledged - acknowledged <= world.devices.length * 5,
        'nothing new is acknowledged after the lock-out',
      );
      expectHolds(saidOnce(world), 'the log says so once, with what to do');
      await undo(world);
      await world.service.start();
      await timeToAck(world);
    }
    const rejections = (await countRejections(world)) - before;
    expectHolds(rejections === 0, `no message is to blame, ${rejections} were rejected`);
    return { times, 'slowest lock-out ms': Math.round(slowest) };
  },
};

async function migrateTo(world: World, later: (typeof goesOn)[]): Promise<void> {
  const { dir, remove } = makeLaterMigrations(later);
  try {
    await migrate(world.cluster.url(), { log: silent, version: laterVersion, dir });
  } finally {
    remove();
  }
}

/** Everything that the service writes to, as counts and the newest transaction of each table. */
async function readWritten(world: World): Promise<string> {
  return runOn(world.cluster.url(), async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name
         from pg_tables where schemaname = 'sensorium_99_0_0' order by 1`,
    );
    expectHolds(tables.length > 10, 'the tables are found');
    const written: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ written: string }>(
        `select concat_ws(' ', count(*), max(xmin::text::bigint)) as written from ${name}`,
      );
      written.push(`${name} ${rows[0]?.written}`);
    }
    return written.join('\n');
  });
}

/** True if, from the first refusal until the service is gone, every answer is 503. */
async function askUntilRefused(world: World): Promise<boolean> {
  let isRefused = false;
  for (;;) {
    const status = await ask(world, '/v2/devices').then(
      (answer) => answer.status,
      () => null,
    );
    if (status === null) return true;
    if (status === 429) {
      await delay(100);
      continue;
    }
    if (isRefused && status !== 503) return false;
    isRefused ||= status === 503;
    if (status !== 200 && status !== 503) return false;
  }
}

function saidOnce(world: World): boolean {
  const told = world.service.log().split('allows only version 99.0.0 or later to write').length - 1;
  return told === 1;
}

/** The database as a backup would restore it, but with what was measured since. */
async function undo(world: World): Promise<void> {
  await runOn(world.cluster.url(), async (client) => {
    await client.query(`alter schema sensorium_99_0_0 rename to ${schema}`);
    await client.query('alter table measurement rename column measured to val');
    await client.query('alter table device drop column of_later_versions');
    await client.query(`delete from public.migration where name like '9000%'`);
    const least = schema.replace('sensorium_', '').replaceAll('_', '.');
    await client.query(
      'update public.sensorium_schema set name = $1, least_writer = $2, changed_by = $2',
      [schema, least],
    );
  });
}

async function countRejections(world: World): Promise<number> {
  return runOn(world.cluster.url(), async (client) => {
    const { rows } = await client.query<{ count: number }>(
      // Devices send such an item now and then, to have it rejected.
      "select count(*)::integer as count from rejection where reason <> 'unknown-sense'",
    );
    return rows[0]?.count ?? -1;
  });
}
