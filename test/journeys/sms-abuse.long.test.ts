import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOn } from '../support/template.ts';
import { configuration, openApp } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { startPhones } from './phones.ts';
import type { Phones } from './phones.ts';
import { runProgram } from './process.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

type Outcome = { kind: string; state: string; reason?: string; count?: number };
type Warning = { path: string; message: string };

const wrong = ['+1 900 555 0100', 'whatsapp:+420777000111', 'client:admin'];
const right = Array.from({ length: 7 }, (_, n) => `+42077700020${n}`);
const events = 20;

/** One measurement fires all of its events, each with ten numbers. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: Array.from({ length: events }, (_, evId) => ({
        evId,
        actions: { sms: { text: 'Buy now', phoneNumber: [...wrong, ...right] } },
        causes: [{ sId: '0x01', thresholds: { isAny: true } }],
      })),
    },
  ],
};

describe('accounts that registered themselves and send SMS as fast as they can', () => {
  let phones: Phones;
  let service: TestService;
  let apps: { app: App; uuid: string; send: (ts: number) => Promise<unknown> }[];

  beforeAll(async () => {
    phones = await startPhones();
    const { notifications } = phones;
    service = await testService(
      {},
      {
        change: (config) => {
          const { allowedPrefixes } = config.notifications.sms;
          const sms = { ...notifications.sms, allowedPrefixes, forAll: null };
          return { ...config, notifications: { ...notifications, sms } };
        },
      },
    );
    apps = await Promise.all(Array.from({ length: 10 }, open));
  });
  afterAll(async () => {
    await service.close();
    await phones.close();
  });

  async function open() {
    const app = await openApp(service.url);
    const device = await connectDevice(
      await app.call<Registration>('POST', '/v2/devices', configuration),
    );
    const { uuid } = device;
    const { warnings } = await app.call<{ warnings: Warning[] }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [uuid],
      purposes: [purpose],
    });
    const path = '/purposes/0/states/0/events/0/actions/sms/phoneNumber';
    expect(warnings.map((warning) => warning.path)).toEqual(
      expect.arrayContaining([path, `${path}/0`, `${path}/1`, `${path}/2`]),
    );
    const send = (ts: number) => device.publish('up/measurements', { sId: '0x01', val: 1, ts });
    return { app, uuid, send };
  }

  const outcomesOf = async ({ app, uuid }: { app: App; uuid: string }) =>
    (
      await app.call<{ notifications: Outcome[] }>(
        'GET',
        `/v2/devices/${uuid}/notifications?limit=100`,
      )
    ).notifications;

  const count = async (where: string) => {
    const { rows } = await runOn(service.databaseUrl, (client) =>
      client.query<{ count: string }>(`select count(*) from notification where ${where}`),
    );
    return Number(rows[0]?.count);
  };

  it('send none without the operator’s permission, and are told so', async () => {
    await Promise.all(apps.map(({ send }) => send(Date.now())));
    for (const one of apps) {
      const outcomes = await outcomesOf(one);
      expect(outcomes).toHaveLength(3);
      expect(outcomes).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ state: 'failed', reason: 'number-form', count: 2 * events }),
          expect.objectContaining({ state: 'failed', reason: 'number-refused', count: events }),
          expect.objectContaining({
            state: 'failed',
            reason: 'sms-not-allowed',
            count: right.length * events,
          }),
        ]),
      );
    }
    expect(phones.texts).toEqual([]);
  });

  it('once allowed, send 20 a day each, and no number gets more than 20', async () => {
    const env = {
      DATABASE_URL: service.databaseUrl,
      SECRET: 'a secret that only this test knows, long enough',
    };
    const permit = async (word: string, { app: { email } }: { app: App }, what = 'sms') => {
      const args = ['src/cli/account.ts', word, email, what];
      const program = runProgram(process.execPath, args, { env });
      return { status: await program.ended(), said: program.stdout() + program.stderr() };
    };
    for (const one of apps) expect((await permit('allow', one)).status).toBe(0);
    const [denied, ...allowed] = apps;
    if (!denied) throw new Error('there are ten');
    expect(await permit('deny', denied)).toMatchObject({ status: 0 });
    expect(await permit('allow', denied, 'mail')).toMatchObject({ status: 1 });

    // An event rings again after the device was in another state.
    for (const round of [1, 2])
      await Promise.all(
        apps.map(async ({ app, uuid, send }) => {
          await app.call('POST', '/v2/devices/profile', {
            deviceAuthUuids: [uuid],
            purposes: [purpose],
          });
          await send(Date.now() + round);
        }),
      );
    const all = await Promise.all(apps.map(outcomesOf));
    const most = Math.min(allowed.length * 20, right.length * 20);
    // What comes too fast for a number waits for a minute, and is sent in one text.
    await expect.poll(() => count(`state = 'queued'`), { timeout: 150_000 }).toBe(0);
    const single = await count(`state = 'sent' and grouped_in is null`);
    expect(phones.texts).toHaveLength(single);
    expect(single).toBeLessThanOrEqual(most);
    expect(await count(`state = 'sent'`)).toBeGreaterThanOrEqual(most);
    const texts = phones.texts as { phoneNumber: string }[];
    for (const number of right) {
      const got = texts.filter(({ phoneNumber }) => phoneNumber === number);
      expect(got.length).toBeLessThanOrEqual(20);
      expect(await count(`state = 'sent' and recipient = '${number}'`)).toBeGreaterThanOrEqual(20);
    }
    expect(all.flat().filter(({ state }) => state === 'held-back').length).toBeGreaterThan(0);
    const ofDenied = all[0]?.filter(({ state }) => state === 'queued' || state === 'sent');
    expect(ofDenied).toEqual([]);
    const beyond = await runOn(service.databaseUrl, (client) =>
      client.query(
        `select account_id from notification where state = 'sent' and grouped_in is null
          group by account_id having count(*) > 20`,
      ),
    );
    expect(beyond.rows).toEqual([]);
    for (const outcomes of all) {
      const sent = outcomes.filter(({ state }) => state === 'queued' || state === 'sent');
      // One row for each reason, however many SMS it stands for.
      expect(outcomes.length - sent.length).toBeLessThanOrEqual(5);
    }
  });
});
