import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { commitEvents, deviceEvent, newDevice, newEvent, startHistory } from './app.ts';
import { t0 } from './streams.ts';
import { insertAccount } from '../support/accounts.ts';

const streams = 1_500;
const rounds = 30;

test('1,500 streams of one account, ten events a second: each gets them all, and other requests are answered', async () => {
  const database = await testDatabase();
  const { db } = database;
  const history = await startHistory(db, { streams });
  const device = await newDevice(db);
  const port = Number(new URL(history.url).port);
  const readers: { socket: Socket; began: boolean; events: number }[] = [];
  for (let i = 0; i < streams; i += 1) {
    const reader = { socket: connect({ host: '127.0.0.1', port }), began: false, events: 0 };
    reader.socket.on('error', () => undefined);
    reader.socket.on('data', (bytes) => {
      reader.began ||= bytes.includes('still here');
      for (let at = bytes.indexOf('data: '); at >= 0; at = bytes.indexOf('data: ', at + 1)) {
        reader.events += 1;
      }
    });
    reader.socket.write(
      'GET /v2/events/stream HTTP/1.1\r\nHost: x\r\n' +
        `Authorization: Bearer ${device.accountId}\r\n\r\n`,
    );
    readers.push(reader);
  }
  const patience = { timeout: 60_000 };
  await expect.poll(() => readers.every(({ began }) => began), patience).toBe(true);

  const somebody = await insertAccount(db);
  const others = await newDevice(db, somebody);
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const nextMs = performance.now() + 100;
    await commitEvents(db, history.bus, [newEvent(device, `${round}`, deviceEvent(t0 + round))]);
    do {
      const startedMs = performance.now();
      await history.json(`/v2/events/${others.uuid}`, somebody);
      times.push(performance.now() - startedMs);
    } while (performance.now() < nextMs);
  }
  await expect.poll(() => readers.every(({ events }) => events === rounds), patience).toBe(true);
  const p99 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)];
  // An idle machine takes a tenth of this. Readers and writer share one process here.
  expect(p99).toBeLessThan(1_000);
  for (const { socket } of readers) socket.destroy();
  await expect.poll(() => history.openStreams(), patience).toBe(0);
  await history.close();
  await database.drop();
});
