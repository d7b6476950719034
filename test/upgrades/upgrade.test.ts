import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shareOf } from '../support/share.ts';
import { ask, call, until } from './ask.ts';
import { upgradeCases } from './cases.ts';
import { compareAnswers } from './compare.ts';
import { connectAs, isLetIn } from './device.ts';
import type { Fixture } from './fixture.ts';
import { install, type Installation } from './install.ts';
import { startProgram, writeConfig, type Program } from './program.ts';
import { startReceiver, type Receiver } from './receiver.ts';

const cases = shareOf(upgradeCases);

type Pair = { data: { token: string; refreshToken: string } };
type Events = { events: { cause: { engine: { evId: number } }; event?: string }[] };

describe.each(cases)('an installation of $version, from $kind', ({ fixture, kind }) => {
  let installation: Installation;
  let receiver: Receiver;
  let program: Program;
  let start: (role?: 'api') => Promise<Program>;

  beforeAll(async () => {
    installation = await install(fixture, kind);
    receiver = await startReceiver();
    const configFile = await writeConfig(installation.dir, receiver.url);
    const clockBehindMs = Date.now() - fixture.recordedTs;
    const { variables } = installation;
    start = (role) => startProgram({ variables, configFile, clockBehindMs, role });
    program = await start('api');
  });
  afterAll(async () => {
    await program?.stop();
    await receiver?.close();
    await installation?.remove();
  });

  const keysOf = (email: string) => {
    const account = fixture.accounts.find((one) => one.email === email);
    if (account === undefined) throw new Error(`The fixture has no account ${email}.`);
    return account;
  };
  const connect = (uuid: string) => {
    const token = fixture.devices.find((device) => device.uuid === uuid)?.opens.at(-1) ?? '';
    return connectAs(program.mqttPort, { uuid, token });
  };

  it('answers every request as before', async () => {
    await compareAnswers(program.url, fixture);
  });

  it('starts with all of its parts, and things change', async () => {
    await program.stop();
    program = await start();
  });

  it('answers a repeated request as before, and creates nothing again', async () => {
    const list = async (token: string) =>
      Promise.all(['/v2/purposes', '/v2/jobs'].map((path) => call(program.url, path, { token })));
    for (const { account, path, body, key, answer } of fixture.made ?? []) {
      const { token } = keysOf(account);
      const before = await list(token);
      const request = { method: 'POST', token, body, key };
      expect(await call(program.url, path, request)).toEqual(answer);
      expect(await list(token)).toEqual(before);
    }
  });

  it('delivers what was waiting to be delivered', async () => {
    const { account, uuid, notificationIds } = fixture.queued;
    const path = `/v2/devices/${uuid}/notifications`;
    const { token } = keysOf(account);
    type Outcomes = { notifications: { notificationId: number; state: string }[] };
    const sent = await until('what waited is sent', async () => {
      const { notifications } = await call<Outcomes>(program.url, path, { token });
      const waited = notifications.filter((one) => notificationIds.includes(one.notificationId));
      return waited.every(({ state }) => state === 'sent') ? waited : null;
    });
    expect(sent).toHaveLength(notificationIds.length);
    const taken = receiver.texts.map(({ notificationId }) => notificationId);
    expect(taken.toSorted()).toEqual(notificationIds.toSorted());
  });

  it("accepts its devices' tokens, and no others", async () => {
    for (const { uuid, opens, refused } of fixture.devices) {
      const token = [...opens, ...refused];
      const found = [];
      for (const one of token) found.push(await isLetIn(program.mqttPort, uuid, one));
      expect(found).toEqual([...opens.map(() => true), ...refused.map(() => false)]);
    }
  });

  it('hands over the profiles that wait for a device', async () => {
    for (const { uuid, pId } of fixture.waiting) {
      const device = await connect(uuid);
      await device.subscribe('down/profile');
      expect(await device.receive('down/profile')).toMatchObject({ pId });
      await device.end();
    }
  });

  it('fires with the one measurement that half-full windows lack', async () => {
    const { account, uuid, measurements, state } = fixture.next;
    const { token } = keysOf(account);
    const list = async (type: string) =>
      (await call<Events>(program.url, `/v2/events/${uuid}?type=${type}`, { token })).events;
    const before = await list('sense');
    const device = await connect(uuid);
    for (const [at, { message, evId }] of measurements.entries()) {
      await device.publish('up/measurements', message);
      const events = await list('sense');
      expect(events).toHaveLength(before.length + at + 1);
      expect(events[0]?.cause.engine.evId).toBe(evId);
    }
    await device.subscribe('down/state');
    expect(await device.receive('down/state')).toMatchObject(state);
    expect((await list('device'))[0]).toMatchObject({ event: 'stateChanged' });
    await device.end();
    await until('the SMS', async () =>
      receiver.texts.some(({ text }) => text?.endsWith('Open the window')) ? true : null,
    );
  });

  it('keeps existing sessions and passwords', async () => {
    for (const { email, password, earlierPassword, token, pair } of fixture.accounts) {
      for (const known of [token, pair.token])
        expect(await ask(program.url, '/v2/accounts', { token: known })).toMatchObject({
          status: 200,
          body: { email },
        });
      const refresh = { method: 'POST', token: pair.token, body: pair };
      const { data } = await call<Pair>(program.url, '/v1/auth/refresh', refresh);
      expect((await ask(program.url, '/v2/accounts', { token: data.token })).status).toBe(200);
      expect((await call<Pair>(program.url, '/v1/auth/refresh', refresh)).data).toEqual(data);
      // A refresh token can be used once. When its successor has been used, using it again ends the session.
      const next = { method: 'POST', token: data.token, body: data };
      expect((await ask(program.url, '/v1/auth/refresh', next)).status).toBe(200);
      expect((await ask(program.url, '/v1/auth/refresh', refresh)).status).toBe(401);
      const logIn = async (password: string) =>
        (await ask(program.url, '/v1/auth/login', { method: 'POST', body: { email, password } }))
          .status;
      expect(await logIn(password)).toBe(200);
      if (earlierPassword) expect(await logIn(earlierPassword)).toBe(401);
    }
  });

  it('recognises a repeated measurement', async () => {
    const { account, path, body } = fixture.answers.find(isHistory) ?? {};
    const { measurements } = body as { measurements: unknown[] };
    const { token } = keysOf(account ?? '');
    const device = await connect(path?.split('/').at(-1) ?? '');
    await device.publish('up/measurements', measurements.slice(0, 100));
    await device.end();
    expect(await ask(program.url, path ?? '', { token })).toMatchObject({ body });
  });
});

/** A plain list of many measurements, all of senses that their device still has. */
function isHistory({ path, accept, body }: Fixture['answers'][number]): boolean {
  if (!/^\/v2\/measurements\/[^?]+$/.test(path) || accept) return false;
  return ((body as { measurements?: unknown[] }).measurements?.length ?? 0) > 100;
}
