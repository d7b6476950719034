import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { call, registerAccount, registerDevices, type RegisteredDevice } from '../api.ts';
import { createFleet, type Fleet } from '../client/fleet.ts';
import { specsOf } from '../fleets.ts';
import { startBenchService } from '../service.ts';
import type { Figures } from './questions.ts';

export type StreamLoad = { devices: number; streams: number; seconds: number };

export type StreamFigures = Figures & { received: number; expected: number };

const warmUpMs = 3_000;

/**
 * Milliseconds from the acknowledgement of a value, as its device sees it, to the reader of a stream. Each device sends
 * a value per second, and each stream carries all of them. If a value reaches a reader before its acknowledgement
 * reaches the device, that counts as zero.
 */
export async function timeStreams(databaseUrl: string, load: StreamLoad): Promise<StreamFigures> {
  const service = await startBenchService({ databaseUrl, redisUrl: null });
  const sockets: Socket[] = [];
  let fleet: Fleet | undefined;
  try {
    const { token } = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, token, load.devices);
    const board = createTimes(devices);
    fleet = createFleet({
      host: '127.0.0.1',
      port: service.mqttPort,
      devices: specsOf(devices),
      ratePerSecond: load.devices,
      payload: (device, seq) => board.payload(device, seq),
      onAcknowledged: board.acknowledged,
    });
    await fleet.connect();
    for (let i = 0; i < load.streams; i += 1)
      sockets.push(await openReader(service.baseUrl, token, board.received));
    fleet.start();
    await delay(warmUpMs);
    board.begin();
    await delay(load.seconds * 1_000);
    board.end();
    await fleet.stop(10_000);
    // Values under way still arrive.
    await delay(1_000);
    return board.figures(load.streams);
  } finally {
    for (const socket of sockets) socket.destroy();
    await fleet?.close();
    await service.stop();
  }
}

/** Opens an address with a ticket, as a browser does. */
async function openReader(
  baseUrl: string,
  token: string,
  onValue: (uuid: string, ts: number) => void,
): Promise<Socket> {
  const body = { kinds: ['measurements'] };
  const { url } = await call<{ url: string }>(baseUrl, 'POST', '/v2/streams', { token, body });
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) });
  let text = '';
  const opened = Promise.withResolvers<void>();
  socket.on('error', opened.reject);
  socket.on('data', (bytes) => {
    const lines = (text + bytes.toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const [, uuid = '', ts = ''] =
        /^data: {"deviceAuthUuid":"([^"]+)".*"ts":(\d+)}/.exec(line) ?? [];
      if (ts !== '') onValue(uuid, Number(ts));
      if (line.startsWith('event: opened')) opened.resolve();
    }
  });
  socket.write(`GET ${url} HTTP/1.1\r\nHost: bench\r\n\r\n`);
  await opened.promise;
  return socket;
}

/** When values were acknowledged, and when they reached a reader. */
function createTimes(devices: RegisteredDevice[]) {
  const startTs = Date.now() - 3_600_000;
  const acknowledgedMs = new Map<string, number>();
  const early = new Map<string, number>();
  const times: number[] = [];
  let expected = 0;
  let isMeasuring = false;
  return {
    payload: (device: number, seq: number) =>
      JSON.stringify({ sId: '0x01', val: 20 + (device % 10) / 10, ts: startTs + seq }),
    acknowledged(device: number, seq: number) {
      if (!isMeasuring) return;
      const key = `${devices[device]?.uuid} ${startTs + seq}`;
      expected += 1;
      acknowledgedMs.set(key, performance.now());
      for (let count = early.get(key) ?? 0; count > 0; count -= 1) times.push(0);
    },
    received(uuid: string, ts: number) {
      if (!isMeasuring && acknowledgedMs.size === 0) return;
      const key = `${uuid} ${ts}`;
      const sinceMs = acknowledgedMs.get(key);
      if (sinceMs !== undefined) times.push(performance.now() - sinceMs);
      else early.set(key, (early.get(key) ?? 0) + 1);
    },
    begin: () => void (isMeasuring = true),
    end: () => void (isMeasuring = false),
    figures(streams: number): StreamFigures {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
      return { p50: at(0.5), p99: at(0.99), received: times.length, expected: expected * streams };
    },
  };
}
