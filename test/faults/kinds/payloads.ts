import { call, registerAccount } from '../../../bench/api.ts';
import { createFleet } from '../../../bench/client/fleet.ts';
import { runOn } from '../../support/template.ts';
import { expectHolds, runFor } from '../fault.ts';
import type { Fault } from '../fault.ts';
import { sId } from '../messages.ts';
import { registerDevices } from '../register.ts';
import type { World } from '../world.ts';

/** A device, and a token of its account. */
type Stranger = { uuid: string; accountToken: string };

/**
 * Another device sends these messages one after the other, each acknowledged. It has an account of its own, because the
 * others' account has used up its quota of devices.
 */
async function sendFromStranger(world: World, payloads: string[]): Promise<Stranger> {
  const { token: accountToken } = await registerAccount(world.service.url);
  const [device] = await registerDevices(world.service.url, accountToken, 1);
  const { uuid, token } = device ?? { uuid: '', token: '' };
  const fleet = createFleet({
    host: '127.0.0.1',
    port: world.service.mqttPort,
    devices: [
      { clientId: uuid, username: uuid, password: token, topic: `devices/${uuid}/up/measurements` },
    ],
    payload: (_device, seq) => payloads[seq] ?? null,
  });
  try {
    await fleet.connect();
    const acknowledged = async () => {
      while (fleet.counts().acknowledged < payloads.length) await world.load.nextAck();
    };
    fleet.start();
    await acknowledged();
  } finally {
    await fleet.close();
  }
  return { uuid, accountToken };
}

const countsOf = async (world: World, { uuid, accountToken }: Stranger) => {
  const { rejections } = await call<{ rejections: { reason: string }[] }>(
    world.service.url,
    'GET',
    `/v2/devices/${uuid}/rejections`,
    { token: accountToken },
  );
  const stored = await runOn(world.cluster.url(), (client) =>
    client.query<{ count: string }>(
      'select count(*) from measurement m join series s on s.id = m.series_id join device d on d.id = s.device_id where d.uuid = $1',
      [uuid],
    ),
  );
  const reasons = rejections.map(({ reason }) => reason).sort();
  return { stored: Number(stored.rows[0]?.count), reasons };
};

/** Clocks ten years off, times out of order, a day's backlog in one burst. */
export const wrongClocks: Fault = {
  name: 'clocks',
  sparesDeliveries: true,
  promise: 'values are kept or rejected as documented; other devices are not affected',
  short: { times: 1, awaySeconds: 0 },
  long: { times: 10, awaySeconds: 0 },
  async inflict(world, { times }) {
    for (let time = 0; time < times; time++) {
      await runFor(world, 200);
      const now = Date.now();
      const tenYears = 3_652 * 86_400_000;
      const at = (ts: number, val: number) => JSON.stringify({ sId, val, ts });
      const backlog = Array.from({ length: 1_440 }, (_, n) => ({
        sId,
        val: n,
        ts: now - (1_440 - n) * 60_000,
      }));
      const payloads = [
        at(now + tenYears, 1),
        at(now - tenYears, 2),
        ...[5, 3, 4, 1, 2].map((n) => at(now - n * 1_000, n)),
        JSON.stringify(backlog.slice(0, 720)),
        JSON.stringify(backlog.slice(720)),
      ];
      const stranger = await sendFromStranger(world, payloads);
      const { stored, reasons } = await countsOf(world, stranger);
      expectHolds(stored === 5 + 1_440, `5 and a backlog of 1440 stored, were ${stored}`);
      const expected = 'expired-timestamp,future-timestamp';
      expectHolds(reasons.join() === expected, `rejected ${expected}, were ${reasons.join()}`);
    }
    return { times };
  },
};

/** A row that the database always refuses. */
export const poison: Fault = {
  name: 'poison',
  sparesDeliveries: true,
  promise: 'the row becomes a rejection; the other 999 are stored',
  short: { times: 1, awaySeconds: 0 },
  long: { times: 10, awaySeconds: 0 },
  async inflict(world, { times }) {
    const refused = 9_999_999;
    await runOn(world.cluster.url(), async (client) => {
      await client.query(
        `create or replace function refuse() returns trigger language plpgsql as
         $$ begin raise exception 'poison' using errcode = '22000'; end $$`,
      );
      await client.query(
        `create or replace trigger poison before insert on measurement
         for each row when (new.val = ${refused}) execute function refuse()`,
      );
    });
    for (let time = 0; time < times; time++) {
      await runFor(world, 200);
      const startTs = Date.now() - 1_000;
      const items = Array.from({ length: 1_000 }, (_, n) => ({ sId, val: n, ts: startTs + n }));
      items[500] = { sId, val: refused, ts: startTs + 500 };
      const stranger = await sendFromStranger(world, [JSON.stringify(items)]);
      const { stored, reasons } = await countsOf(world, stranger);
      expectHolds(stored === 999, `999 stored, were ${stored}`);
      expectHolds(reasons.join() === 'unstorable', `one rejection, got ${reasons.join()}`);
    }
    return { times };
  },
};
