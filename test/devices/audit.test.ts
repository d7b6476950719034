import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/audit/audit.ts';
import { databaseKinds } from '../support/database.ts';
import { type App, startApp } from './app.ts';
import { credentials, openDoor } from './door.ts';

describe.each(databaseKinds)('the audit trail of devices on %s', (kind) => {
  let app: App;
  beforeAll(async () => {
    app = await startApp({ kind, quotas: { devices: 2 } });
  });
  afterAll(() => app.close());

  const list = async (token: string, of = app) => {
    const answer = await of.call('GET', '/v2/accounts/audit', { token });
    expect(answer.status).toBe(200);
    return answer.body['entries'] as AuditEntry[];
  };

  test('records additions and removals, each with who and from where', async () => {
    const token = await app.account();
    const device = await app.device(token);
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    const common = {
      auditId: expect.any(String),
      timestamp: expect.any(Number),
      by: 'session',
      sessionId: expect.any(String),
      address: '127.0.0.1',
      details: { deviceAuthUuid: device.uuid },
    };
    expect(await list(token)).toEqual([
      { ...common, kind: 'device-removed' },
      { ...common, kind: 'device-added' },
    ]);
  });

  test('records profiles with the names of their purposes, and configurations with the name of the device', async () => {
    const token = await app.account();
    const { uuid } = await app.device(token);
    const purpose = { puId: 1, name: 'Cold room', initStId: 1, states: [{ stId: 1, events: [] }] };
    const install = { deviceAuthUuids: [uuid], purposes: [purpose, { ...purpose, puId: 2 }] };
    const installed = await app.call('POST', '/v2/devices/profile', { token, body: install });
    expect(installed.status).toBe(200);
    const path = `/v2/devices/${uuid}/configuration`;
    const body = { device: { name: 'Cellar' }, module: [] };
    expect((await app.call('PUT', path, { token, body })).status).toBe(200);
    const nobody = { ...install, deviceAuthUuids: [uuid, crypto.randomUUID()] };
    await app.call('POST', '/v2/devices/profile', { token, body: nobody });
    const entries = (await list(token)).map(({ kind, by, details }) => ({ kind, by, details }));
    expect(entries.slice(0, 2)).toEqual([
      {
        kind: 'configuration-changed',
        by: 'session',
        details: { deviceAuthUuid: uuid, name: 'Cellar' },
      },
      {
        kind: 'profile-installed',
        by: 'session',
        details: {
          pId: installed.body['pId'],
          purposes: ['Cold room', 'Cold room'],
          devices: 1,
          deviceAuthUuids: [uuid],
        },
      },
    ]);
    expect(entries).toHaveLength(3);
  });

  test('records no refused request', async () => {
    const token = await app.account();
    const body = { device: {}, module: [] };
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => app.call('POST', '/v2/devices', { token, body })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    expect((await list(token)).map(({ kind }) => kind)).toEqual(['device-added', 'device-added']);
    const someone = await app.account();
    const [theirs] = await list(token);
    const path = `/v2/devices/${String(theirs?.details['deviceAuthUuid'])}`;
    await app.call('DELETE', path, { token: someone });
    await app.call('POST', `${path}/token`, { token: someone, body: { revoke: true } });
    expect(await list(token)).toHaveLength(2);
    expect(await list(someone)).toEqual([]);
  });

  test('records their tokens: rotated, retired by the device, revoked', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const door = openDoor(app, token);
    await door.letIn(credentials(device));
    const fresh = await door.rotate(device, false);
    door.timeMs = Date.now();
    await door.letIn(fresh);
    await door.letIn(fresh);
    await door.rotate(device, true);
    door.authenticator.close();
    const entries = await list(token);
    const details = { deviceAuthUuid: device.uuid };
    expect(entries.map(({ kind, by }) => `${kind} by ${by}`)).toEqual([
      'device-token-revoked by session',
      'device-token-retired by device',
      'device-token-rotated by session',
      'device-added by session',
    ]);
    for (const entry of entries) expect(entry.details).toEqual(details);
  });

  test('records nothing that was rolled back', async () => {
    const other = await startApp({ kind });
    const token = await other.account();
    const device = await other.device(token);
    // The removal's own row cannot be written, so neither can the entry.
    await other.db.query(`alter table removed_device add constraint none check (false) not valid`);
    const { status } = await other.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(status).toBe(500);
    expect((await list(token, other)).map((entry) => entry.kind)).toEqual(['device-added']);
    await other.close();
  });
});
