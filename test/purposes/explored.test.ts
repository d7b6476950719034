import { afterAll, beforeAll, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { Warning } from '../../src/contract/warnings.ts';
import { createExploring } from '../../src/purposes/cases.ts';
import { type App, startApp } from '../devices/app.ts';
import { replay } from '../engine/explore/replay.ts';

// Enough time, also on a busy machine.
const warnMs = 20_000;
let app: App;
beforeAll(async () => {
  app = await startApp({ warnMs });
});
afterAll(() => app.close());

const limit = (thresholds: object) => ({ sId: '0x01', thresholds });
const goto = (gotoStId: number) => ({ engine: { gotoStId } });
const push = { cloud: { sendPush: true } };

const purposeOf = (...states: object[][]) => ({
  puId: 1,
  initStId: 1,
  states: states.map((events, s) => ({
    stId: s + 1,
    events: events.map((event, e) => ({ evId: e + 1, ...event })),
  })),
});

const swinging = purposeOf(
  [{ causes: [limit({ isGt: 8 })], actions: goto(2) }],
  [{ causes: [limit({ isLt: 10 })], actions: goto(1) }],
);
const notice = purposeOf([{ actions: { ...push, alarm: false }, causes: [limit({ isGt: 8 })] }]);
const shadowed = purposeOf(
  [
    { causes: [limit({ isGt: 8 })], actions: goto(2) },
    { causes: [limit({ isGt: 10 })], actions: goto(3) },
  ],
  [{ causes: [limit({ isLt: 5 })], actions: goto(1) }],
  [],
);
const excluding = purposeOf([{ causes: [limit({ isGt: 8 }), limit({ isLt: 5 })] }]);

const of = (warnings: unknown, code: string) =>
  (warnings as Warning[]).filter((warning) => warning.code === code);

async function warningsOfStored(purpose: object): Promise<unknown> {
  const token = await app.account();
  const { status, body } = await app.call('POST', '/v2/purposes', { token, body: purpose });
  expect(status).toBe(200);
  expect(body).not.toHaveProperty('explored');
  return body['warnings'];
}

test('a purpose that is stored says what one value makes of it, with a stream that does it', async () => {
  const [found] = of(await warningsOfStored(swinging), 'back-and-forth');
  expect(found).toMatchObject({ path: '/states/0' });
  expect(replay([Purpose.parse(swinging)], found?.witness ?? []).left).toHaveLength(1);
  const [told] = of(await warningsOfStored(notice), 'told-often');
  expect(told).toMatchObject({ path: '/states/0/events/0' });
  expect(replay([Purpose.parse(notice)], told?.witness ?? []).fired).toHaveLength(1);
});

test('and what never happens', async () => {
  const warnings = await warningsOfStored(shadowed);
  expect(of(warnings, 'never-fires')).toMatchObject([{ path: '/states/0/events/1' }]);
  expect(of(warnings, 'unreachable-state')).toMatchObject([{ path: '/states/2' }]);
  const ofExcluding = await warningsOfStored(excluding);
  expect(of(ofExcluding, 'causes-exclude')).toMatchObject([{ path: '/states/0/events/0' }]);
});

test('so does one that is changed, or restored', async () => {
  const token = await app.account();
  const send = (method: string, path: string, body?: object) =>
    app.call(method, path, { token, ...(body && { body }) });
  const stored = await send('POST', '/v2/purposes', excluding);
  const path = `/v2/purposes/${String(stored.body['purposeUuid'])}`;
  const changed = await send('PUT', path, notice);
  expect(of(changed.body['warnings'], 'told-often')).toHaveLength(1);
  const restored = await send('POST', `${path}/versions/1/restore`);
  expect(of(restored.body['warnings'], 'causes-exclude')).toHaveLength(1);
});

test('installed purposes are explored as one profile, within what the senses can have', async () => {
  const token = await app.account();
  const { uuid } = await app.device(token);
  // 0x01 has values from -40 to 85.
  const always = purposeOf([{ causes: [limit({ isGt: -50 })] }]);
  const install = async (...purposes: object[]) => {
    const body = { deviceAuthUuids: [uuid], purposes };
    return (await app.call('POST', '/v2/devices/profile', { token, body })).body['warnings'];
  };
  const [found] = of(await install(always), 'fires-on-every-value');
  expect(found).toMatchObject({ path: '/purposes/0/states/0/events/0' });
  expect(replay([Purpose.parse(always)], found?.witness ?? []).fired).toHaveLength(1);
  expect(of(await warningsOfStored(always), 'fires-on-every-value')).toEqual([]);
  const leading = (puId: number, thresholds: object, gotoPuId: number) => {
    const event = { causes: [limit(thresholds)], actions: { engine: { gotoPuId } } };
    return { ...purposeOf([event]), puId };
  };
  const both = await install(leading(1, { isGt: 8 }, 2), leading(2, { isLt: 10 }, 1));
  expect(of(both, 'back-and-forth')).toMatchObject([
    { path: '/purposes/0/states/0' },
    { path: '/purposes/1/states/0' },
  ]);
});

test('a request that waits too long is answered without, and says so; the next one has it', async () => {
  const exploring = createExploring({ warnMs: 1 });
  const asked = { purposes: [Purpose.parse(excluding)], pathOf: () => '' };
  try {
    // A thread does not begin in a millisecond.
    expect(await exploring.warnOf(1, asked)).toBeNull();
    await expect
      .poll(() => exploring.warnOf(1, asked), { timeout: warnMs })
      .toMatchObject([{ code: 'causes-exclude' }]);
  } finally {
    await exploring.close();
  }
  const hurried = await startApp({ warnMs: 1 });
  try {
    const token = await hurried.account();
    const { body } = await hurried.call('POST', '/v2/purposes', { token, body: excluding });
    expect(body).toMatchObject({ explored: 'unknown', warnings: [] });
  } finally {
    await hurried.close();
  }
});

test('one thread explores all; after one that fails the next begins', async () => {
  const exploring = createExploring({ warnMs });
  const codesOf = async (accountId: number, purpose: Purpose) => {
    const warnings = await exploring.warnOf(accountId, { purposes: [purpose], pathOf: () => '' });
    return warnings && warnings.map(({ code }) => code)[0];
  };
  try {
    const purposes = [swinging, notice, excluding].map((one) => Purpose.parse(one));
    const all = await Promise.all(purposes.map((purpose, n) => codesOf(n, purpose)));
    expect(all).toEqual(['back-and-forth', 'told-often', 'causes-exclude']);
    // No purpose: the thread fails.
    expect(await codesOf(1, { puId: 1, initStId: 1 } as Purpose)).toBeNull();
    expect(await codesOf(1, Purpose.parse({ ...notice, name: 'other' }))).toBe('told-often');
  } finally {
    await exploring.close();
  }
});
