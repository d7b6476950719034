import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { parseUplink } from '../../connector/device/receive.ts';
import { createLocalBus } from '../../src/bus/bus.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, UplinkContent } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { openDatabase } from '../../src/db/database.ts';
import { schemaOf } from '../database.ts';
import { startIngest } from '../../src/ingest/ingest.ts';
import type { IngestOptions } from '../../src/ingest/ingest.ts';
import { createKnownMeanings } from '../../src/events/meanings.ts';
import { createKnownSeries } from '../../src/measurements/store.ts';
import { addWebhooks, decideInBench } from './alarms.ts';
import { senseId } from './purposes.ts';

const dayMs = 86_400_000;

export type Value = number | { lat: number; long: number };

/** The service's path from a parsed message into the database, in this process and without its listeners. */
export type Bed = {
  /** Adds a device with an account of its own that has this many webhooks. */
  addDevice: (purpose: Purpose | null, webhooks?: number) => Promise<DeviceIdentity>;
  /**
   * Resolves when the message, with one measurement per millisecond, is acknowledged. `laterMs`: how much later than
   * the previous message it arrives, by its own time.
   */
  send: (device: DeviceIdentity, values: Value[], laterMs?: number) => Promise<void>;
  /** The same with a payload of `up/measurements`, valid or not, as a device publishes it. */
  publish: (device: DeviceIdentity, payload: string) => Promise<void>;
  /** Bytes of all tables and indexes after a vacuum. */
  countBytes: () => Promise<number>;
  close: () => Promise<void>;
};

export async function openBed(
  connectionString: string,
  options: Pick<IngestOptions, 'maxBatchItems'>,
): Promise<Bed> {
  const db = openDatabase({
    connectionString,
    schema: await schemaOf(connectionString),
    maxConnections: 4,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 60_000,
    pipeline: true,
    keepPlans: true,
    onIdleError: () => undefined,
  });
  const bus = createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
  const ingest = startIngest(
    {
      ...options,
      limits: {
        maxAheadMs: 10_000 * dayMs,
        measurementMaxAgeMs: 10_000 * dayMs,
        eventMaxAgeMs: 10_000 * dayMs,
        rejectionsPerMessage: 10,
        rejectionBytesPerDevice: 1_048_576,
        ringMaxAgeMs: 900_000,
      },
      maxInFlight: 2,
      anotherAtMessages: 1_000,
      anotherAfterMs: 50,
      maxRememberedDevices: 1_000,
      maxRememberedBytes: 268_435_456,
    },
    {
      db,
      bus,
      log: pino({ level: 'warn' }, pino.destination(2)),
      knownSeries: createKnownSeries(),
      meanings: createKnownMeanings(Date.now),
      alarms: decideInBench(),
      handOver: async () => undefined,
      clock: Date.now,
      monotonicClock: () => performance.now(),
      newUuid: randomUUID,
      random: Math.random,
    },
  );
  let ts = Date.now();
  return {
    async addDevice(purpose, webhooks = 0) {
      const device = await addDevice(db, purpose);
      if (webhooks > 0) await addWebhooks(db, device.accountId, webhooks);
      return device;
    },
    send(device, values, laterMs) {
      ts += laterMs ?? 0;
      const items = values.map((val, index) => ({ index, value: { sId: senseId, val, ts: ts++ } }));
      const content: UplinkContent = { kind: 'measurements', items };
      const arrivedTs = laterMs === undefined ? Date.now() : ts;
      return new Promise((stored, failed) => {
        ingest.ingest(
          device,
          { topic: 'up/bench', excerpt: '', arrivedTs, content, rejections: [] },
          { isWithdrawn: false, stored, failed },
        );
      });
    },
    publish(device, payload) {
      const prefix = `devices/${device.uuid}/up/`;
      const topic = `${prefix}measurements`;
      const uplink = parseUplink(topic, prefix, Buffer.from(payload), Date.now(), 10);
      return new Promise((stored, failed) => {
        ingest.ingest(device, uplink, { isWithdrawn: false, stored, failed });
      });
    },
    countBytes: () => countBytes(db),
    async close() {
      await ingest.close(10_000);
      await db.close();
    },
  };
}

async function countBytes(db: Database): Promise<number> {
  await db.query('vacuum');
  const { rows } = await db.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(oid))::text as bytes
       from pg_class where relkind in ('r', 'p', 'm') and relpersistence = 'p'`,
  );
  return Number(rows[0]?.bytes);
}

async function addDevice(db: Database, purpose: Purpose | null): Promise<DeviceIdentity> {
  const configuration = { device: {}, module: [{ moduleId: 'm', senses: [{ sId: senseId }] }] };
  const { rows } = await db.query<DeviceIdentity>(
    `with owner as (
       insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
       returning id
     ), made as (
       insert into device (account_id, connector_id, configuration)
       select id, 1, $1 from owner returning id, uuid, account_id
     ), state as (
       insert into device_state (device_id) select id from made
     ), content as (
       insert into profile_content (account_id, hash, bytes, purposes)
       select id, sha256(convert_to($2, 'UTF8')), octet_length($2), $2::json
         from owner where $2::text is not null
       returning id, account_id
     ), installed as (
       insert into profile (account_id, content_id)
       select account_id, id from content returning id
     ), waits as (
       insert into device_profile (device_id, profile_id)
       select made.id, installed.id from made, installed
     )
     select id as "deviceId", uuid, account_id as "accountId" from made`,
    [JSON.stringify(configuration), purpose && JSON.stringify([purpose])],
  );
  const [device] = rows;
  if (!device) throw new Error('The database did not give the device it made.');
  return device;
}
