import { request as openRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { csvOf, header, importerOf, linesOf, openImporter, startInstallation } from './harness.ts';
import type { Importer, Installation } from './harness.ts';

const dayMs = 86_400_000;
const t0 = Date.now() - 20 * dayMs;

describe.each(databaseKinds)('an import that is disturbed, on %s', (kind) => {
  let service: Installation;
  let own: Importer;
  beforeAll(async () => {
    service = await startInstallation({}, { kind });
    own = await openImporter(service.url);
  });
  afterAll(() => service?.close());

  const storedOf = async (uuid: string) => {
    const { rows } = await service.db.query<{ count: number }>(
      `select count(*)::integer
         from measurement join series on series.id = series_id join device on device.id = device_id
        where uuid = $1`,
      [uuid],
    );
    return rows[0]?.count ?? 0;
  };
  const allStored = async () => {
    const { rows } = await service.db.query<{ measurements: number; series: number }>(
      `select (select count(*) from measurement)::integer as measurements,
              (select count(*) from series)::integer as series`,
    );
    return rows[0];
  };

  /** A body that is sent when the test says so. */
  function pieces() {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const encode = (text: string) => new TextEncoder().encode(text);
    return {
      body: readable,
      send: (lines: string[]) => writer.write(encode(`${lines.join('\n')}\n`)),
      end: () => writer.close(),
    };
  }

  test('a connection that breaks leaves whole batches, and a repetition completes it', async () => {
    const { deviceAuthUuid: uuid } = await own.register();
    const lines = linesOf(uuid, 20_000, t0);
    const request = openRequest(`${service.url}/v2/measurements/import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${own.token}`, 'content-type': 'text/csv' },
    });
    const closed = new Promise<void>((resolve) => request.once('close', resolve));
    request.on('error', () => undefined);
    request.write(csvOf(...lines.slice(0, 15_000)));
    // The end of the line is missing, which makes it another value, so it must not be stored.
    request.write(lines[15_000]?.slice(0, -3) ?? '');
    await expect.poll(() => storedOf(uuid)).toBeGreaterThan(0);
    request.destroy();
    await closed;
    const { status, stored, repeated, errors } = await own.import(csvOf(...lines));
    expect([status, stored + repeated, errors]).toEqual([200, lines.length, []]);
    expect(repeated).toBeGreaterThan(0);
    expect(await storedOf(uuid)).toBe(lines.length);
    const { measurements } = await own.json(
      'GET',
      `/v2/measurements/${uuid}?start=${t0 + 15_000_000}&end=${t0 + 15_000_000}`,
    );
    expect(measurements).toEqual([{ sId: '0x02', ts: t0 + 15_000_000, val: 3_750 }]);
  });

  test('what comes slowly is stored while more is expected', async () => {
    const { deviceAuthUuid: uuid } = await own.register();
    const { body, send, end } = pieces();
    const importing = own.import(body);
    await send([header]);
    let sent = 0;
    while ((await storedOf(uuid)) === 0) await send(linesOf(uuid, 1, t0 + (sent += 1) * 1_000));
    await end();
    expect(await importing).toMatchObject({ status: 200, stored: sent, rejected: 0 });
  });

  test('lines of a device that is removed meanwhile are rejected, and nothing of it remains', async () => {
    const gone = (await own.register()).deviceAuthUuid;
    const stays = (await own.register()).deviceAuthUuid;
    const before = await allStored();
    const { body, send, end } = pieces();
    const importing = own.import(body);
    await send([header, ...linesOf(gone, 9_000, t0), ...linesOf(stays, 10, t0)]);
    await expect.poll(() => storedOf(gone)).toBeGreaterThan(0);
    await own.json('DELETE', `/v2/devices/${gone}`);
    await send([...linesOf(gone, 9_000, t0 + dayMs), ...linesOf(stays, 10, t0 + dayMs)]);
    await end();
    const { status, stored, rejected, errors } = await importing;
    expect([status, stored + rejected]).toEqual([200, 18_020]);
    expect(rejected).toBeGreaterThanOrEqual(9_000);
    expect(errors[0]?.reason).toBe('not-found: the account has no such device');
    expect(await storedOf(stays)).toBe(20);
    await expect.poll(allStored).toEqual({
      measurements: (before?.measurements ?? 0) + 20,
      series: (before?.series ?? 0) + 1,
    });
  });

  test('an import of an account that is deleted meanwhile ends, and leaves nothing', async () => {
    const before = await allStored();
    const theirs = await openImporter(service.url);
    const { deviceAuthUuid: uuid } = await theirs.register();
    const { body, send } = pieces();
    const importing = theirs.import(body);
    await send([header, ...linesOf(uuid, 9_000, t0)]);
    await expect.poll(() => storedOf(uuid)).toBeGreaterThan(0);
    await theirs.json('DELETE', '/v2/accounts');
    let isOver = false;
    const over = importing.finally(() => (isOver = true));
    // The service checks each second whether the sender still may.
    let sent = 0;
    while (!isOver) {
      const more = send(linesOf(uuid, 3_000, t0 + (sent += 1) * dayMs)).catch(() => undefined);
      // The service answers early, so the rest of the body is not sent.
      await Promise.race([more, over]);
    }
    const answer = await over;
    expect(answer.status).toBe(401);
    expect(answer.detail).toMatch(/The import ended early: \d+ lines are stored, /);
    await expect.poll(allStored).toEqual(before);
  });

  test('a key that is confined to labels imports for devices with one of them, as long as they have it', async () => {
    const [inside, outside] = [
      (await own.register()).deviceAuthUuid,
      (await own.register()).deviceAuthUuid,
    ];
    await own.json('PUT', `/v2/devices/${inside}/labels`, { labels: ['cellar'] });
    const keyOf = async (body: object) =>
      importerOf(
        service.url,
        (await own.json('POST', '/v2/accounts/keys', { name: 'k', ...body }))['key'] as string,
      );
    const key = await keyOf({ scopes: ['data:write'], labels: ['cellar', 'roof'] });
    const lines = [...linesOf(inside, 2, t0), ...linesOf(outside, 2, t0)];
    expect(await key.import(csvOf(...lines))).toMatchObject({ stored: 2, rejected: 2 });
    await own.json('PUT', `/v2/devices/${inside}/labels`, { labels: ['attic'] });
    expect(await key.import(csvOf(...lines))).toMatchObject({ stored: 0, rejected: 4 });
    const reader = await keyOf({ scopes: ['data:read'] });
    expect(await reader.import(csvOf(...lines))).toMatchObject({ status: 403 });
  });

  test('counts for storedBytes, and is refused if that is used up', async () => {
    const theirs = await openImporter(service.url);
    const { deviceAuthUuid: uuid } = await theirs.register();
    const usedBytes = async () => {
      const { usage } = await theirs.json('GET', '/v2/accounts/usage');
      return (usage as { quota: string; used: number }[]).find(
        ({ quota }) => quota === 'storedBytes',
      )?.used;
    };
    const lines = [...linesOf(uuid, 500, t0), ...linesOf(uuid, 500, t0 - dayMs)];
    await theirs.import(csvOf(...lines));
    await theirs.import(csvOf(...lines));
    expect(await usedBytes()).toBe(100_000);
    await service.db.query(
      `insert into account_quota (account_id, quota, value)
       select account_id, 'storedBytes', 90000 from device where uuid = $1`,
      [uuid],
    );
    await expect
      .poll(() => theirs.import(csvOf(...lines)), { timeout: 60_000 })
      .toMatchObject({ status: 503, quota: 'storedBytes', limit: 90_000, used: 100_000 });
  });
});

test.skipIf(!databaseKinds.includes('timescaledb'))(
  'into compressed days, each line is stored once, and existing ones stay',
  async () => {
    const service = await startInstallation({}, { kind: 'timescaledb' });
    const own = await openImporter(service.url);
    const { deviceAuthUuid: uuid } = await own.register();
    const old = linesOf(uuid, 5_000, t0);
    await own.import(csvOf(...old));
    await service.db.query(`select compress_chunk(c, true) from show_chunks('measurement') c`);
    const between = linesOf(uuid, 5_000, t0 + 500);
    const beside = old.slice(0, 100).map((line) => line.replace(/,[^,]*,,$/, ',-7,,'));
    const receipt = await own.import(csvOf(...old, ...between, ...beside));
    expect(receipt).toMatchObject({ stored: 5_100, repeated: 5_000, rejected: 0 });
    await service.db.query(`select compress_chunk(c, true) from show_chunks('measurement') c`);
    const again = await own.import(csvOf(...old, ...between, ...beside));
    expect(again).toMatchObject({ stored: 0, repeated: 10_100, rejected: 0 });
    const exported = (await own.export('text/csv', `devices=${uuid}`)).trimEnd().split('\r\n');
    const withEmpty = [...old, ...between, ...beside].toSorted();
    expect(exported.slice(1).toSorted()).toEqual(withEmpty);
    await service.close();
  },
);
