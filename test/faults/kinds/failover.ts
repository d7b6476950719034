import { setTimeout as delay } from 'node:timers/promises';
import { connectAsync } from 'mqtt';
import type { Cluster } from '../../support/cluster.ts';
import { runOn } from '../../support/template.ts';
import { expectHolds, runFor, timeToAck } from '../fault.ts';
import type { Fault } from '../fault.ts';
import { sId } from '../messages.ts';
import { registerDevices, type WitnessDevice } from '../register.ts';
import type { World } from '../world.ts';
import { databaseNetwork } from './database.ts';

const standbyName = 's1';

/**
 * The worst order of what an operator may meet. The synchronous standby goes away, so no commit returns. The hanging
 * primary is restarted, and from then on has what no standby has. Devices send that again. Then the primary is lost,
 * and the standby promoted. Every second time nobody else sends meanwhile, because a transaction of repetitions alone
 * writes nothing.
 */
export const failover: Fault = {
  name: 'failover',
  promise:
    'a message that only the primary has is not acknowledged, however often it is sent; nothing acknowledged is lost',
  losesOutcomes: true,
  // Devices with alarms would send too, and transactions that write hold up those that do not.
  world: { databaseProxy: true, watch: false },
  short: { times: 1, awaySeconds: 1 },
  long: { times: 50, awaySeconds: 2 },
  async inflict(world, { times, awaySeconds }) {
    let slowest = 0;
    let onlyThere = 0;
    for (let time = 0; time < times; time++) {
      const primary = world.cluster;
      const standby = await primary.startStandby(standbyName);
      await follow(primary);
      await runFor(world, 300);
      const own = await registerDevices(world.service.url, world.accountToken, 1);
      const send = senderOf(world, own, time % 4 < 2 ? 'MQTT' : 'HTTP');
      const isQuiet = time % 2 === 0;
      if (isQuiet) expectHolds(await world.load.stop(60_000), 'everything was acknowledged');

      await standby.halt('immediate');
      const first: Promise<boolean>[] = [];
      let before = 0;
      do {
        first.push(send());
        await untilCommitsWait(primary);
        // Acknowledgements of earlier commits may still arrive.
        await delay(500);
        if (before === 0) before = world.load.counts().acknowledged;
        await primary.halt('immediate');
        await primary.start();
        // It may have been in the transaction behind the waiting one, which was not committed.
      } while (isQuiet && (await countMeasurements(primary, own)) === 0);
      const again = send();
      await untilCommitsWait(primary);
      await delay(awaySeconds * 1_000);
      const acknowledged = world.load.counts().acknowledged - before;
      expectHolds(acknowledged === 0, `no acknowledgement without a standby, were ${acknowledged}`);

      const proxy = databaseNetwork(world);
      proxy.cut();
      const stored = await countMeasurements(primary);
      await primary.halt('immediate');
      await standby.start();
      await promote(standby);
      const isOnlyThere = stored - (await countMeasurements(standby));
      if (isQuiet)
        expectHolds(isOnlyThere > 0, 'the primary had measurements that the standby had not');
      onlyThere += isOnlyThere;
      world.cluster = standby;
      await primary.remove();
      proxy.leadTo(standby.port);
      proxy.heal();
      // Those that are retried up to here are stored on the standby.
      await Promise.all(first);
      const kept = await again.then(
        async (isAcknowledged) => !isAcknowledged || (await countMeasurements(standby, own)) === 1,
      );
      expectHolds(kept, 'a repetition that was acknowledged is kept');
      world.load.start();
      slowest = Math.max(slowest, await timeToAck(world));
    }
    return { times, 'lost with primaries': onlyThere, 'slowest next ack ms': slowest };
  },
};

/** Does not wait in the statement: its snapshot could hold up the recovery that it waits for, and be cancelled. */
async function promote(standby: Cluster): Promise<void> {
  await runOn(standby.url(), async (client) => {
    await client.query('select pg_promote(false)');
    const find = () => client.query('select where pg_is_in_recovery()');
    while ((await find()).rowCount !== 0) await delay(20);
  });
}

/** From here on commits wait for the standby. */
async function follow(primary: Cluster): Promise<void> {
  await runOn(primary.url(), async (client) => {
    await client.query(`alter system set synchronous_standby_names = '${standbyName}'`);
    await client.query('select pg_reload_conf()');
    for (;;) {
      const { rowCount } = await client.query(
        `select from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`,
      );
      if (rowCount === 1) return;
      await delay(20);
    }
  });
}

async function untilCommitsWait(primary: Cluster): Promise<void> {
  await runOn(primary.url(), async (client) => {
    const find = () => client.query(`select from pg_stat_activity where wait_event = 'SyncRep'`);
    while ((await find()).rowCount === 0) await delay(20);
  });
}

async function countMeasurements(
  cluster: Cluster,
  devices: WitnessDevice[] | null = null,
): Promise<number> {
  return runOn(cluster.url(), async (client) => {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::integer as count
         from measurement m join series s on s.id = m.series_id join device d on d.id = s.device_id
        where $1::uuid[] is null or d.uuid = any($1)`,
      [devices?.map(({ uuid }) => uuid) ?? null],
    );
    return rows[0]?.count ?? 0;
  });
}

/** Makes a device send one measurement, each time over a new connection. Returns whether it was acknowledged. */
function senderOf(
  { service }: World,
  [device]: WitnessDevice[],
  protocol: 'MQTT' | 'HTTP',
): () => Promise<boolean> {
  const { uuid = '', token = '' } = device ?? {};
  const topic = `devices/${uuid}/up/measurements`;
  const payload = JSON.stringify({ sId, val: 1, ts: Date.now() });
  async function overHttp(): Promise<boolean> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const url = `${service.url}/${topic}`;
    return (await fetch(url, { method: 'POST', headers, body: payload })).ok;
  }
  async function overMqtt(): Promise<boolean> {
    const client = await connectAsync(`mqtt://127.0.0.1:${service.mqttPort}`, {
      username: uuid,
      password: token,
      reconnectPeriod: 0,
    });
    const closed = new Promise<boolean>((resolve) => client.on('close', () => resolve(false)));
    const published = client.publishAsync(topic, payload, { qos: 1 }).then(() => true);
    const isAcknowledged = await Promise.race([published, closed]);
    client.end(true);
    return isAcknowledged;
  }
  return () => (protocol === 'MQTT' ? overMqtt() : overHttp()).catch(() => false);
}
