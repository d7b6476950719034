import fastJsonPatch from 'fast-json-patch';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { replaceConfigurations } from '../../src/devices/queries.ts';
import { forgetVersions } from '../../src/versions/versions.ts';
import { type App, configuration, purpose, startApp } from '../devices/app.ts';

let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
afterAll(() => app.close());

const call = (method: string, path: string, rest: Parameters<App['call']>[2] = {}) =>
  app.call(method, path, { token, ...rest });
const keptOf = async (path: string) => (await call('GET', `${path}/versions`)).body['versions'];

async function addPurpose(limit = 20, query = ''): Promise<string> {
  const answer = await call('POST', `/v2/purposes${query}`, { body: purpose(7, limit) });
  expect(answer.status).toBe(200);
  return `/v2/purposes/${String(answer.body['purposeUuid'])}`;
}

describe('versions of a purpose', () => {
  test('say who wrote them, when and why; what is there is the newest', async () => {
    const before = Date.now();
    const path = await addPurpose(20, '?reason=first');
    await call('PUT', path, {
      body: purpose(7, 25),
      headers: { 'x-reason': encodeURIComponent('Kühlraum: zu viele Alarme') },
    });
    await call('PUT', `${path}?reason=`, { body: { ...purpose(7, 30), name: 'other' } });
    const versions = (await keptOf(path)) as { timestamp: number }[];
    expect(versions).toMatchObject([
      { version: 3, by: 'session', name: 'other' },
      { version: 2, by: 'session', name: 'purpose 7', reason: 'Kühlraum: zu viele Alarme' },
      { version: 1, by: 'session', name: 'purpose 7', reason: 'first' },
    ]);
    expect(versions[0]).not.toHaveProperty('reason');
    for (const { timestamp } of versions) {
      expect(timestamp).toBeGreaterThanOrEqual(before);
      expect(timestamp).toBeLessThanOrEqual(Date.now());
    }
    const limits = [20, 25, 30];
    for (const [index, limit] of limits.entries()) {
      const { body } = await call('GET', `${path}/versions/${index + 1}`);
      expect(body).toMatchObject({
        states: [{ events: [{ causes: [{ thresholds: { isGt: limit } }] }] }, {}],
      });
    }
  });

  test('a change that changes nothing makes none', async () => {
    const path = await addPurpose();
    const { headers } = await call('GET', path);
    const same = await call('PUT', path, { body: purpose(7) });
    expect(same.headers.get('etag')).toBe(headers.get('etag'));
    expect(await keptOf(path)).toHaveLength(1);
  });

  test('are listed in pages', async () => {
    const path = await addPurpose(0);
    for (let limit = 1; limit < 5; limit += 1) await call('PUT', path, { body: purpose(7, limit) });
    const found: number[] = [];
    let next: string | undefined = `${path}/versions?limit=2`;
    while (next !== undefined) {
      const page = await call('GET', next);
      const versions = page.body['versions'] as { version: number }[];
      expect(versions.length).toBeLessThanOrEqual(2);
      found.push(...versions.map(({ version }) => version));
      next = /<(.*)>/.exec(page.headers.get('link') ?? '')?.[1];
    }
    expect(found).toEqual([5, 4, 3, 2, 1]);
  });

  test('the patch between two makes the one of the other', async () => {
    const path = await addPurpose();
    const other = {
      ...purpose(7, 25),
      name: 'a/b~c',
      states: [...purpose(7, 25).states].reverse(),
    };
    await call('PUT', path, { body: other });
    for (const [from, to] of [
      [1, 2],
      [2, 1],
      [2, 2],
    ]) {
      const { body } = await call('GET', `${path}/diff?from=${from}&to=${to}`);
      const before = (await call('GET', `${path}/versions/${from}`)).body;
      const after = (await call('GET', `${path}/versions/${to}`)).body;
      const patch = body['patch'] as fastJsonPatch.Operation[];
      expect(fastJsonPatch.applyPatch(before, patch, true).newDocument).toEqual(after);
      if (from === to) expect(patch).toEqual([]);
      else expect(patch).not.toEqual([]);
    }
  });

  test('one is restored as a new version, and the audit trail says so', async () => {
    const path = await addPurpose();
    await call('PUT', `${path}?reason=try`, { body: purpose(7, 25) });
    const restored = await call('POST', `${path}/versions/1/restore?reason=was+better`);
    expect(restored.status).toBe(200);
    expect(restored.headers.get('etag')).toBe('"3"');
    const now = await call('GET', path);
    expect(now.text).toBe((await call('GET', `${path}/versions/1`)).text);
    expect(await keptOf(path)).toMatchObject([{ version: 3, reason: 'was better' }, {}, {}]);
    const { body } = await call('GET', '/v2/accounts/audit?kinds=purpose-changed');
    const purposeUuid = path.split('/').at(-1);
    expect((body['entries'] as unknown[]).slice(0, 2)).toMatchObject([
      { by: 'session', details: { purposeUuid, version: 3, restored: 1, reason: 'was better' } },
      { by: 'session', details: { purposeUuid, version: 2, reason: 'try', name: 'purpose 7' } },
    ]);
  });

  test('one that could not be stored today is not restored', async () => {
    const path = await addPurpose();
    const id = path.split('/').at(-1);
    await app.db.query(`update purpose set body = '{"puId":"x"}' where id = $1`, [id]);
    await call('PUT', path, { body: purpose(7, 25) });
    const refused = await call('POST', `${path}/versions/2/restore`);
    expect([refused.status, refused.body['detail']]).toEqual([
      409,
      'Version 2 is no longer a valid purpose.',
    ]);
  });

  test('what a program that knows no versions writes is one, by nobody knows whom', async () => {
    const path = await addPurpose(20, '?reason=mine');
    const id = path.split('/').at(-1);
    const body = JSON.stringify(purpose(7, 99));
    await app.db.query('update purpose set body = $2::text::json where id = $1', [id, body]);
    const versions = await keptOf(path);
    expect(versions).toMatchObject([
      { version: 2, by: 'unknown' },
      { version: 1, reason: 'mine' },
    ]);
    expect((versions as object[])[0]).not.toHaveProperty('reason');
    expect((await call('GET', path)).headers.get('etag')).toBe('"2"');
  });

  test('belong to the account, and go with the purpose', async () => {
    const path = await addPurpose();
    await call('PUT', path, { body: purpose(7, 25) });
    const stranger = await app.account();
    for (const end of ['/versions', '/versions/1', '/diff?from=1&to=2'])
      expect((await app.call('GET', path + end, { token: stranger })).status).toBe(404);
    const restore = await app.call('POST', `${path}/versions/1/restore`, { token: stranger });
    expect(restore.status).toBe(404);
    for (const end of ['/versions/3', '/versions/0', '/versions/x', '/diff?from=1&to=3'])
      expect((await call('GET', path + end)).status).toBe(404);
    expect((await call('GET', `${path}/diff?from=1`)).status).toBe(400);
    expect((await call('DELETE', path)).status).toBe(200);
    expect((await call('GET', `${path}/versions`)).status).toBe(404);
    const { rows } = await app.db.query('select from former_version where purpose_id = $1', [
      path.split('/').at(-1),
    ]);
    expect(rows).toEqual([]);
  });

  test('a reason that cannot be read is refused, and nothing is changed', async () => {
    const path = await addPurpose();
    const body = purpose(7, 25);
    for (const reason of ['%E4', 'a%00b', 'x'.repeat(501)]) {
      const refused = await call('PUT', path, { body, headers: { 'x-reason': reason } });
      expect(refused.status).toBe(400);
      expect(refused.body['errors']).toMatchObject([{ path: 'X-Reason' }]);
    }
    expect((await call('PUT', `${path}?reason=${'x'.repeat(501)}`, { body })).status).toBe(400);
    expect(await keptOf(path)).toHaveLength(1);
  });
});

describe('If-Match on a purpose (RFC 9110 section 13.1.1)', () => {
  test('changes only the version that it names', async () => {
    const path = await addPurpose();
    const { headers } = await call('GET', path);
    const tag = headers.get('etag') ?? '';
    const put = (limit: number, match: string) =>
      call('PUT', path, { body: purpose(7, limit), headers: { 'if-match': match } });
    const first = await put(25, tag);
    expect([first.status, first.headers.get('etag')]).toEqual([200, '"2"']);
    for (const wrong of [tag, 'W/"2"', '2', '"x", "y"']) {
      const refused = await put(26, wrong);
      expect(refused.status).toBe(412);
      expect(refused.body['type']).toBe('urn:sensorium:error:precondition-failed');
    }
    const restore = await call('POST', `${path}/versions/1/restore`, {
      headers: { 'if-match': tag },
    });
    expect(restore.status).toBe(412);
    expect((await call('DELETE', path, { headers: { 'if-match': tag } })).status).toBe(412);
    expect((await put(26, '"1", "2"')).status).toBe(200);
    expect((await put(27, '*')).status).toBe(200);
    expect((await call('DELETE', path, { headers: { 'if-match': '"4"' } })).status).toBe(200);
  });

  test('of two that begin with the same version one is refused', async () => {
    const path = await addPurpose();
    const answers = await Promise.all(
      [1, 2, 3, 4].map((limit) =>
        call('PUT', path, { body: purpose(7, limit), headers: { 'if-match': '"1"' } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
    expect(await keptOf(path)).toHaveLength(2);
  });
});

describe('versions of a configuration', () => {
  const named = (name: string) => ({ ...configuration, device: { ...configuration.device, name } });

  test('say who wrote them and why, and one is restored', async () => {
    const { uuid } = await app.device(token);
    const path = `/v2/devices/${uuid}/configuration`;
    await call('PUT', `${path}?reason=moved`, { body: named('cellar') });
    await call('PUT', path, { body: named('cellar') });
    expect(await keptOf(path)).toMatchObject([
      { version: 2, by: 'session', reason: 'moved', name: 'cellar' },
      { version: 1, by: 'session', name: 'probe' },
    ]);
    const { body } = await call('GET', `${path}/diff?from=1&to=2`);
    expect(body['patch']).toEqual([{ op: 'replace', path: '/device/name', value: 'cellar' }]);
    expect((await call('POST', `${path}/versions/1/restore`)).status).toBe(200);
    expect((await call('GET', path)).body).toMatchObject({ device: { name: 'probe' } });
    expect(app.told.at(-1)).toMatchObject({ message: { uuid, push: 'configuration' } });
    const audit = await call('GET', '/v2/accounts/audit?kinds=configuration-changed&limit=2');
    expect(audit.body['entries']).toMatchObject([
      { details: { deviceAuthUuid: uuid, restored: 1, name: 'probe' } },
      { details: { deviceAuthUuid: uuid, name: 'cellar' } },
    ]);
    const stranger = await app.account();
    expect((await app.call('GET', `${path}/versions`, { token: stranger })).status).toBe(404);
  });

  test('the same once more is no version, and changes no time', async () => {
    const { uuid } = await app.device(token);
    const path = `/v2/devices/${uuid}/configuration`;
    await call('PUT', path, { body: named('one') });
    const before = await keptOf(path);
    await call('PUT', path, { body: named('one') });
    expect(await keptOf(path)).toEqual(before);
  });

  test('a device makes one an hour of its own', async () => {
    const { uuid, deviceId } = await app.device(token);
    const path = `/v2/devices/${uuid}/configuration`;
    const send = (name: string) =>
      app.db.transaction((tx) =>
        replaceConfigurations(tx, [{ deviceId, configuration: named(name) }]),
      );
    for (const name of ['a', 'b', 'c']) await send(name);
    expect(await keptOf(path)).toMatchObject([
      { version: 2, by: 'device', name: 'c' },
      { version: 1, by: 'session', name: 'probe' },
    ]);
    await app.db.query(
      `update former_version set ended_at = ended_at - interval '61 minutes' where device_id = $1`,
      [deviceId],
    );
    await send('d');
    expect(await keptOf(path)).toMatchObject([
      { version: 3, by: 'device', name: 'd' },
      { version: 2, by: 'device', name: 'c' },
      { version: 1, by: 'session', name: 'probe' },
    ]);
    // What a person writes is kept at once.
    await call('PUT', path, { body: named('e') });
    await send('f');
    expect(await keptOf(path)).toMatchObject([
      { version: 5 },
      { version: 4, name: 'e' },
      {},
      {},
      {},
    ]);
  });
});

describe('what is kept', () => {
  test('at most 256 KiB of a thing, but at least one former version', async () => {
    const path = await addPurpose();
    const id = path.split('/').at(-1);
    const write = (bytes: number, mark: number) =>
      app.db.query(
        `update purpose set bytes = $2::integer, version = version + 1, changed_at = now(),
                body = ('{"mark":' || $3::text || '}')::json where id = $1`,
        [id, bytes, mark],
      );
    for (let mark = 0; mark < 6; mark += 1) await write(100_000, mark);
    expect(await keptOf(path)).toMatchObject([{ version: 7 }, { version: 6 }, { version: 5 }]);
    await write(500_000, 6);
    await write(500_000, 7);
    expect(await keptOf(path)).toMatchObject([{ version: 9 }, { version: 8, bytes: 500_000 }]);
  });

  test('at most 1,000 versions of a thing', async () => {
    const path = await addPurpose();
    const id = path.split('/').at(-1);
    await app.db.query(
      `insert into former_version (purpose_id, version, made_at, ended_at, name, bytes, body)
       select $1, n, now(), now(), '', 1, '{}' from generate_series(1, 1000) as n`,
      [id],
    );
    await app.db.query('update purpose set version = 1001, body = body where id = $1', [id]);
    await call('PUT', path, { body: purpose(7, 25) });
    const { rows } = await app.db.query(
      'select min(version) as first, count(*)::int as count from former_version where purpose_id = $1',
      [id],
    );
    expect(rows).toEqual([{ first: 2, count: 1_000 }]);
  });

  test('nothing that was replaced longer ago than events are kept', async () => {
    const path = await addPurpose();
    for (const limit of [25, 26]) await call('PUT', path, { body: purpose(7, limit) });
    const id = path.split('/').at(-1);
    await app.db.query(
      `update former_version set ended_at = ended_at - interval '2 days'
        where purpose_id = $1 and version = 1`,
      [id],
    );
    await forgetVersions(app.db, Date.now() - 86_400_000);
    expect(await keptOf(path)).toMatchObject([{ version: 3 }, { version: 2 }]);
  });
});
