import { createBefore } from '../before.ts';
import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { sendOnce } from '../send-once.ts';
import { enough, pause, work } from '../workers.ts';

const bigLists: NoisyKind = {
  name: 'big-lists',
  says: 'six lists at once of 600 devices with names of 1 MB, stored from before',
  async setUp(enemy) {
    await createBefore(enemy).addDevices(600, 1_000_000);
    return (signal) =>
      work(6, signal, () => enemy.ask('GET', '/v2/devices', { isDiscarded: true }));
  },
};

/** Refused logins fill the audit trail, which is listed at the same time, and resumed at made-up cursors. */
const auditLists: NoisyKind = {
  name: 'audit-lists',
  says: 'fills its audit trail with sessions and lists it in 20 loops, with made-up cursors',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    const forged = Buffer.from(JSON.stringify(['9'.repeat(1_000)])).toString('base64url');
    return (signal) =>
      work(20, signal, async (worker, turn) => {
        if (worker % 4 === 0) {
          const body = { email, password: turn % 2 === 0 ? password : 'wrong, and long enough' };
          await enemy.ask('POST', '/v2/accounts/login', { body });
        }
        await enemy.ask('GET', '/v2/accounts/audit?limit=1000');
        await enemy.ask('GET', `/v2/accounts/audit?cursor=${forged}`);
        await enemy.ask('GET', `/v2/devices?cursor=${forged}`);
        const headers = { 'If-None-Match': Array(500).fill('"x"').join(',') };
        await enemy.ask('GET', '/v2/openapi.json', { headers });
      });
  },
};

/** The list of senses is as long as a request may be. */
const bucketsSenses = Array.from({ length: 900 }, (_, n) => `0x${n.toString(16)}`).join();

const buckets: NoisyKind = {
  name: 'buckets',
  says: 'buckets of a second over 90 days, and of 900 senses at once',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    if (!device) throw new Error('There is no device.');
    await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
    await createBefore(enemy).addMeasurements(device.uuid, 200_000);
    const path = `/v2/measurements/${device.uuid}`;
    const queries = ['?bucket=1s', `?bucket=1h&senses=${bucketsSenses}`, '?bucket=7s&limit=1'];
    return (signal) =>
      work(12, signal, (worker) =>
        enemy.ask('GET', path + (queries[worker % queries.length] ?? ''), { isDiscarded: true }),
      );
  },
};

const rows = 300_000;

const exports_: NoisyKind = {
  name: 'exports',
  says: '16 exports of 300,000 measurements at once, as CSV and in buckets of 30 s',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    if (!device) throw new Error('There is no device.');
    await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
    await createBefore(enemy).addMeasurements(device.uuid, rows);
    const path = `/v2/measurements/${device.uuid}`;
    const headers = { Accept: 'text/csv' };
    return (signal) =>
      work(16, signal, (worker) =>
        enemy.ask('GET', worker % 2 === 0 ? path : `${path}?bucket=30s`, {
          headers,
          isDiscarded: true,
        }),
      );
  },
};

const [exportedDevices, rowsOfDevice, slowReaders] = [10, 50_000, 16];

/** Exports of many devices at once, over all times. A reader takes 64 KiB, waits, and leaves some time later. */
const slowExports: NoisyKind = {
  name: 'slow-exports',
  says: '16 readers that take exports of 500,000 measurements of ten devices slowly, and 4 that take them fast',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, exportedDevices);
    for (const device of devices) {
      await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
      await createBefore(enemy).addMeasurements(device.uuid, rowsOfDevice);
    }
    const path = `/v2/measurements?devices=${devices.map(({ uuid }) => uuid).join(',')}&start=0`;
    const port = Number(new URL(enemy.url).port);
    const asked =
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\n` +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    const readSlowly = async (signal: AbortSignal) => {
      const socket = enemy.dial(port).on('data', () => socket.pause());
      socket.write(asked);
      enemy.tally.count('slow readers');
      for (let read = 0; read < 40 && !signal.aborted && !socket.closed; read += 1) {
        socket.pause();
        await pause(100, signal);
        socket.resume();
      }
      socket.destroy();
    };
    return async (signal) => {
      await Promise.all([
        work(slowReaders, signal, () => readSlowly(signal)),
        work(4, signal, () => enemy.ask('GET', path, { isDiscarded: true })),
      ]);
    };
  },
};

const connections = 200;

const slowDownloads: NoisyKind = {
  name: 'slow-downloads',
  says: '200 lists of 5,000 devices that are requested and never read',
  async setUp(enemy) {
    await createBefore(enemy).addDevices(5_000, 200);
    const port = Number(new URL(enemy.url).port);
    const asked =
      'GET /v2/devices HTTP/1.1\r\nHost: x\r\n' +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    return async (signal) => {
      // Pipelined: each connection asks ten times, then reads nothing.
      for (let n = 0; n < connections; n++) enemy.dial(port).pause().write(asked.repeat(10));
      await enough(signal);
    };
  },
};

const eventStreamsPurpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

const eventStreams: NoisyKind = {
  name: 'event-streams',
  says: '1,500 attempts at an event stream at once, with ten events a second',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 1);
    await install(enemy, devices, [eventStreamsPurpose]);
    const readings = createReadings();
    return async (signal) => {
      await Promise.all([
        flood(
          enemy,
          { devices, ratePerSecond: 10, payload: (device) => readings(device, 1) },
          signal,
        ),
        work(1_500, signal, () => enemy.ask('GET', '/v2/events/stream', { isDiscarded: true })),
      ]);
    };
  },
};

const streamResumesPurpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

/** Each attempt begins at the oldest event, and is given up at its first answer. */
const streamResumes: NoisyKind = {
  name: 'stream-resumes',
  says: 'streams that resume at the oldest of 20,000 events, again and again',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [streamResumesPurpose]);
    const readings = createReadings();
    const filled = AbortSignal.timeout(15_000);
    await flood(
      enemy,
      { devices, payload: (device, seq) => (seq < 50 ? readings(device, 100) : null) },
      filled,
    );
    const port = Number(new URL(enemy.url).port);
    const asked =
      'GET /v2/events/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\n' +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    return (signal) =>
      work(20, signal, async () => {
        const socket = enemy.dial(port);
        socket.write(asked);
        let bytes = 0;
        await new Promise<void>((resolve) => {
          socket.on('data', (chunk) => (bytes += chunk.length) > 100_000 && socket.destroy());
          socket.on('close', resolve);
          signal.addEventListener('abort', () => socket.destroy(), { once: true });
          socket.setTimeout(1_000, () => socket.destroy());
        });
        enemy.tally.count('streams');
      });
  },
};

const far = '9'.repeat(15);
const open = Array.from({ length: 700 }, (_, n) => n * 2 + 1).join(',');

/** Stream ids that are far ahead, of another server, as long as a header may be, or missing. */
const ids = [
  `${far}.1:${far}:`,
  `1.1:1:.${'f'.repeat(32)}`,
  `1.1:1401:${open}`,
  `${far}.${far}:${far}:.0`,
  'x'.repeat(8_000),
  '1'.repeat(8_000),
];

const farResumes: NoisyKind = {
  name: 'far-resumes',
  says: 'streams that resume where there was no stream: ahead, elsewhere, with 700 open transactions, with ids of 8 KB',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(40, signal, async (worker, turn) => {
        const socket = enemy.dial(port);
        socket.write(
          `GET /v2/events/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: ${ids[(worker + turn) % ids.length]}\r\n` +
            `Authorization: Bearer ${enemy.account.token}\r\n\r\n`,
        );
        await new Promise<void>((resolve) => {
          socket.once('data', () => socket.destroy());
          socket.once('close', () => resolve());
          signal.addEventListener('abort', () => socket.destroy(), { once: true });
          socket.setTimeout(1_000, () => socket.destroy());
        });
        enemy.tally.count('streams');
      });
  },
};

const atOnce = 100;
/** How long others' lists may take, p99. */
const readMs = 1_000;

const lists = [
  '/v2/devices?limit=100&search=zzz&sort=-lastSeenTs&counts=true',
  '/v2/alarms?label=nobody',
  '/v2/devices?limit=100&sort=name&counts=true',
  '/v2/devices/labels',
];

const listsAtOnce: NoisyKind = {
  name: 'lists-at-once',
  says: 'a hundred lists at once, of 10,000 devices and 200,000 closed alarms',
  readMs,
  async setUp(enemy) {
    const before = createBefore(enemy);
    await before.addDevices(10_000, 20);
    await before.addClosedAlarms(200_000);
    return (signal) =>
      work(atOnce, signal, (worker) =>
        enemy.ask('GET', lists[worker % lists.length] as string, { isDiscarded: true }),
      );
  },
};

const changesAtOnce: NoisyKind = {
  name: 'changes-at-once',
  says: 'a hundred changes at once of an account, and of the configurations of 1,000 senses of its devices',
  readMs,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const senses = Array.from({ length: 1_000 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));
    const body = { device: { name: 'noisy' }, module: [{ moduleId: 'm', senses }] };
    return (signal) =>
      work(atOnce, signal, (worker, turn) => {
        const device = devices[worker % devices.length];
        return worker % 2 === 0
          ? enemy.ask('PUT', '/v2/accounts', { body: { name: `noisy ${turn}` } })
          : enemy.ask('PUT', `/v2/devices/${device?.uuid}/configuration`, { body });
      });
  },
};

/** Lists, exports and streams: many at once, from far back, slowly read. */
export const readingKinds: NoisyKind[] = [
  bigLists,
  auditLists,
  buckets,
  exports_,
  slowExports,
  slowDownloads,
  eventStreams,
  streamResumes,
  farResumes,
  listsAtOnce,
  changesAtOnce,
];
