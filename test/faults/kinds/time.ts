import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../../../bench/api.ts';
import { runOn } from '../../support/template.ts';
import { expectHolds, runFor, timeToAck } from '../fault.ts';
import type { Fault, Observations } from '../fault.ts';
import { sId } from '../messages.ts';
import { registerDevices } from '../register.ts';
import type { World } from '../world.ts';

/** A longer time without a sign of listening is a gap (`src/connector-uptime`). */
const gapSeconds = 15;

/** The process stops for a while, as when a machine is migrated, or a laptop's lid is closed. */
export const frozen: Fault = {
  name: 'frozen',
  promise: 'nothing is lost; the pause does not count as silence of a device',
  short: { times: 1, awaySeconds: gapSeconds + 2 },
  long: { times: 2, awaySeconds: 60 },
  async inflict(world, { times, awaySeconds }) {
    const { service } = world;
    const pid = service.pid();
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      const gaps = await countGaps(world);
      process.kill(pid, 'SIGSTOP');
      await delay(awaySeconds * 1_000);
      process.kill(pid, 'SIGCONT');
      slowest = Math.max(slowest, await timeToAck(world));
      while (awaySeconds > gapSeconds && (await countGaps(world)) === gaps) await delay(50);
    }
    expectHolds(service.pid() === pid && service.isRunning(), 'the process keeps running');
    return { times, awaySeconds, 'slowest next ack ms': slowest };
  },
};

const hourMs = 3_600_000;

/** The service follows the database's clock. */
export const clockForward: Fault = {
  name: 'clock-forward',
  promise:
    "the service's clock jumps an hour ahead: the hour is a gap and not silence of a device; alarms continue",
  short: { times: 1, awaySeconds: 0 },
  long: { times: 3, awaySeconds: 0 },
  async inflict(world, { times }) {
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      const gaps = await countGaps(world);
      const move = () => moveClock(world, hourMs);
      if (world.watch) await world.watch.setForward(hourMs, move);
      else await move();
      expectHolds((await countGaps(world)) > gaps, 'the hour is a gap');
      await runFor(world, 500);
    }
    return { times };
  },
};

/** Returns when the process follows the clock and has noted that it listens. */
async function moveClock(world: World, byMs: number): Promise<void> {
  const gaps = await countGaps(world);
  const untilTs = (await timeOf(world)) + byMs / 2;
  await runOn(world.cluster.url(), (client) =>
    client.query(
      `do $do$ begin execute format(
         'create or replace function service_now() returns timestamptz language sql volatile as
          $$ select clock_timestamp() + interval ''%s ms'' $$',
         ${byMs} + round(extract(epoch from service_now() - clock_timestamp()) * 1000)); end $do$`,
    ),
  );
  while ((await countGaps(world)) === gaps) await delay(50);
  while ((await timeOf(world)) < untilTs) await delay(50);
}

const noAlarms = { watch: false };

/** Devices have correct clocks, and one has none. */
export const clockBack: Fault = {
  name: 'clock-back',
  promise:
    "the service's clock is set back by an hour, then corrected: nothing is refused, nothing is deleted",
  short: { times: 1, awaySeconds: 0 },
  long: { times: 3, awaySeconds: 30 },
  world: noAlarms,
  longOnly: true,
  inflict: (world, severity) => setAndRight(world, severity, -hourMs),
};

export const clockLeap: Fault = {
  name: 'clock-leap',
  promise:
    "the service's clock is a year ahead, then corrected: nothing is refused, nothing is deleted",
  short: { times: 1, awaySeconds: 0 },
  long: { times: 3, awaySeconds: 30 },
  world: noAlarms,
  longOnly: true,
  inflict: (world, severity) => setAndRight(world, severity, 365 * 24 * hourMs),
};

async function setAndRight(
  world: World,
  { times, awaySeconds }: { times: number; awaySeconds: number },
  byMs: number,
): Promise<Observations> {
  const clockless = await startClockless(world);
  for (let time = 0; time < times; time++) {
    await runFor(world, 500);
    await clockless.send();
    await setClock(world, byMs);
    expectHolds(await isInDoubt(world), 'the status says that the clock is in doubt');
    await clockless.send();
    await runFor(world, 500);
    await delay(awaySeconds * 1_000);
    await setClock(world, 0);
    expectHolds(!(await isInDoubt(world)), 'the clock is trusted once it is right again');
    await clockless.send();
    await runFor(world, 500);
  }
  return { times, 'sent without a time': await clockless.count() };
}

/** A device without a clock: its values get the time of their arrival. */
async function startClockless({ service, accountToken, cluster }: World) {
  const [device] = await registerDevices(service.url, accountToken, 1);
  const { uuid, token } = device ?? { uuid: '', token: '' };
  let sent = 0;
  return {
    async send() {
      const body = [1, 2, 3].map(() => ({ sId, val: (sent += 1) }));
      const answer = await call<{ stored: number }>(
        service.url,
        'POST',
        `/devices/${uuid}/up/measurements`,
        { token, body },
      );
      expectHolds(answer.stored === 3, 'values without a time are stored, whatever the clock says');
    },
    async count() {
      const { rows } = await runOn(cluster.url(), (client) =>
        client.query<{ count: number }>(
          `select count(*)::integer as count
             from measurement m join series s on s.id = m.series_id join device d on d.id = s.device_id
            where d.uuid = $1`,
          [uuid],
        ),
      );
      expectHolds(rows[0]?.count === sent, 'all values without a time are in the history');
      return sent;
    },
  };
}

/** Returns when the service follows it. */
async function setClock(world: World, aheadMs: number): Promise<void> {
  const before = await timeOf(world);
  const rightTs = await runOn(world.cluster.url(), async (client) => {
    await client.query(
      `create or replace function service_now() returns timestamptz language sql volatile as
       $$ select clock_timestamp() + interval '${aheadMs} ms' $$`,
    );
    const { rows } = await client.query<{ ts: number }>(
      `select extract(epoch from service_now())::float8 * 1000 as ts`,
    );
    return rows[0]?.ts ?? before;
  });
  while (Math.abs((await timeOf(world)) - rightTs) > hourMs / 2) await delay(50);
}

async function isInDoubt({ service }: World): Promise<boolean> {
  const response = await fetch(`${service.url}/v2/status`);
  const { degraded } = (await response.json()) as { degraded: string[] };
  return degraded.includes('clock');
}

/** The time in an answer of the service. A refusal contains it too. */
async function timeOf({ service, accountToken }: World): Promise<number> {
  const headers = { Authorization: `Bearer ${accountToken}` };
  const response = await fetch(`${service.url}/v2/alarms?limit=1`, { headers });
  const { timestamp } = (await response.json()) as { timestamp: number };
  return timestamp;
}

async function countGaps({ cluster }: World): Promise<number> {
  const { rows } = await runOn(cluster.url(), (client) =>
    client.query<{ count: number }>('select count(*)::integer as count from listening_gap'),
  );
  return rows[0]?.count ?? 0;
}
