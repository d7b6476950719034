import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';
import { header, linesOf, openImporter, startInstallation } from './harness.ts';
import type { Importer, Installation } from './harness.ts';

const t0 = Date.now() - 20 * 86_400_000;
const count = 120_000;

let cluster: Cluster;
let service: Installation;
let own: Importer;
beforeAll(async () => {
  cluster = await startThrowAwayCluster({ durable: true });
  service = await startInstallation({ DATABASE_URL: cluster.url() });
  own = await openImporter(service.url);
});
afterAll(async () => {
  await service?.close();
  await cluster?.remove();
});

/** Counts a device's rows, over a connection of its own. */
async function storedOf(uuid: string): Promise<{ count: number; times: number }> {
  const db = openTestDatabase(cluster.url(), { maxConnections: 1 });
  const { rows } = await db.query<{ count: number; times: number }>(
    `select count(*)::integer, count(distinct ts)::integer as times
       from measurement join series on series.id = series_id join device on device.id = device_id
      where uuid = $1`,
    [uuid],
  );
  await db.close();
  return rows[0] ?? { count: 0, times: 0 };
}

/** Begins an import, and returns it once a part is stored. `goOn` sends the rest. */
async function begin(lines: string[]) {
  const uuid = (lines[0] ?? '').slice(0, 36);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const send = (some: string[]) => writer.write(Buffer.from(`${some.join('\n')}\n`));
  const importing = own.import(readable);
  await send([header, ...lines.slice(0, count / 2)]);
  await expect.poll(async () => (await storedOf(uuid)).count).toBeGreaterThan(0);
  const goOn = async () => {
    for (let from = count / 2; from < count; from += 1_000)
      await send(lines.slice(from, from + 1_000));
    await writer.close();
  };
  return { importing, goOn };
}

test('waits for a database that restarts: everything is stored once', async () => {
  const { deviceAuthUuid: uuid } = await own.register();
  const { importing, goOn } = await begin(linesOf(uuid, count, t0));
  // The service answers early, so the rest of the body is not sent.
  void goOn().catch(() => undefined);
  await cluster.halt('fast');
  await cluster.start();
  const { status, stored, repeated, rejected } = await importing;
  // Whether the last commit succeeded may be unknown; its lines were then there already.
  expect([status, stored + repeated, rejected]).toEqual([200, count, 0]);
  expect(await storedOf(uuid)).toEqual({ count, times: count });
});

test('a database that stays away ends it with whole batches stored; a repetition completes it', async () => {
  const { deviceAuthUuid: uuid } = await own.register();
  const lines = linesOf(uuid, count, t0);
  const { importing, goOn } = await begin(lines);
  await cluster.halt('fast');
  void goOn().catch(() => undefined);
  const answer = await importing;
  expect(answer.status).toBe(503);
  const [, told] = /ended early: (\d+) lines are stored, /.exec(answer.detail ?? '') ?? [];
  await cluster.start();
  const before = await storedOf(uuid);
  expect(before.count).toBeGreaterThanOrEqual(Number(told));
  expect(before.count).toBeLessThan(count);
  // From the first line on, without a gap.
  const { measurements } = await own.json(
    'GET',
    `/v2/measurements/${uuid}?start=${t0 + (before.count - 1) * 1_000}`,
  );
  expect(measurements).toHaveLength(1);
  const again = await own.import([header, ...lines].join('\n'));
  expect(again).toMatchObject({
    status: 200,
    repeated: before.count,
    stored: count - before.count,
  });
  expect(await storedOf(uuid)).toEqual({ count, times: count });
});

test('an account runs one import at a time; another waits for ten seconds, then gets 429', async () => {
  const { deviceAuthUuid: uuid } = await own.register();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const held = own.import(readable);
  await writer.write(Buffer.from(`${header}\n${linesOf(uuid, 20_000, t0).join('\n')}\n`));
  await expect.poll(async () => (await storedOf(uuid)).count).toBeGreaterThan(0);
  const refused = await own.import(header);
  expect(refused).toMatchObject({ status: 429, type: 'urn:sensorium:error:too-many-requests' });
  // Another account's import does not wait for it.
  expect(await (await openImporter(service.url)).import(header)).toMatchObject({ status: 200 });
  const waiting = own.import(header);
  await writer.close();
  expect(await held).toMatchObject({ status: 200, stored: 20_000 });
  expect(await waiting).toMatchObject({ status: 200 });
});
