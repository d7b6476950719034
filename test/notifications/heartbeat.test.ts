import { afterEach, expect, test } from 'vitest';
import { startHeartbeat } from '../../src/notifications/heartbeat.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Line = { event: string; failing?: string[] };

async function start(checks: Record<string, () => boolean | Promise<boolean>>, status = () => 200) {
  const watcher = await startHookReceiver(() => ({ status: status() }));
  const lines: Line[] = [];
  const keep = (fields: object) => void lines.push(fields as Line);
  const log = { debug: keep, info: keep, warn: keep };
  const heartbeat = startHeartbeat({ url: `${watcher.url}/ping`, everyMs: 20, checks, log });
  closing.push(watcher.close, heartbeat.close);
  const count = () => watcher.received.length;
  return { count, lines, first: watcher.request(), close: heartbeat.close };
}

test('the watcher gets requests as long as all is well', async () => {
  const { count, lines } = await start({ ticks: () => true, deliveries: async () => true });
  await expect.poll(count).toBeGreaterThan(3);
  expect(lines).toEqual([]);
});

test('while a check fails it gets none, and the log says so once', async () => {
  let isWell = true;
  let looks = 0;
  const ticks = async () => {
    looks += 1;
    if (!isWell) throw new Error('The database is unreachable.');
    return true;
  };
  const { count, lines, first } = await start({ ticks, connectors: () => isWell });
  await first;
  isWell = false;
  const before = looks;
  // A round that had begun may still send one request.
  await expect.poll(() => looks).toBeGreaterThan(before + 1);
  const asked = count();
  await expect.poll(() => looks).toBeGreaterThan(before + 6);
  expect(count()).toBe(asked);
  isWell = true;
  await expect.poll(count).toBeGreaterThan(asked);
  await expect
    .poll(() => lines)
    .toEqual([
      expect.objectContaining({ event: 'heartbeat.withheld' }),
      expect.objectContaining({ event: 'heartbeat.sent' }),
    ]);
  expect(lines[0]?.failing).toContain('connectors');
});

test('a watcher that refuses is logged once, and gets further requests', async () => {
  let status = 500;
  const { count, lines } = await start({}, () => status);
  await expect.poll(count).toBeGreaterThan(3);
  expect(lines.map(({ event }) => event)).toEqual(['heartbeat.unanswered']);
  status = 200;
  await expect.poll(() => lines.map(({ event }) => event)).toContain('heartbeat.sent');
});

test('it ends with the service', async () => {
  const { count, first, close } = await start({});
  await first;
  await close();
  const asked = count();
  await new Promise((resolve) => setImmediate(resolve));
  expect(count()).toBe(asked);
});
