import { setTimeout as delay } from 'node:timers/promises';
import { createFleet } from '../../../bench/client/fleet.ts';
import type { Answer, AskOptions } from './ask.ts';
import type { Enemy, EnemyAccount } from './enemy.ts';
import { each } from './workers.ts';

export type EnemyDevice = { uuid: string; token: string };

/** A sense 0x01 without a range. */
export const anySense = {
  device: { name: 'noisy' },
  module: [{ moduleId: 'm', senses: [{ sId: '0x01' }] }],
};

/** Makes a request that has to succeed before the noise. Waits if told to come later, and throws if refused. */
export async function demand(
  enemy: Enemy,
  method: string,
  path: string,
  options: AskOptions = {},
): Promise<Answer> {
  for (let tries = 0; ; tries++) {
    const answer = await enemy.ask(method, path, options);
    if (answer.status === 200) return answer;
    if (answer.status !== 429 || tries === 20)
      throw new Error(`${method} ${path}: ${answer.status} ${answer.text.slice(0, 500)}`);
    await delay(Math.min(10, answer.retryAfterSeconds) * 1_000);
  }
}

type Registering = { configuration?: object; account?: EnemyAccount };

export async function registerDevices(
  enemy: Enemy,
  count: number,
  { configuration = anySense, account = enemy.account }: Registering = {},
): Promise<EnemyDevice[]> {
  const devices: EnemyDevice[] = [];
  await each(Array.from({ length: count }).keys(), 16, async () => {
    const options = { body: configuration, token: account.token };
    const { text } = await demand(enemy, 'POST', '/v2/devices', options);
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = JSON.parse(text) as {
      deviceAuthUuid: string;
      deviceAuthToken: string;
    };
    devices.push({ uuid, token });
  });
  return devices;
}

/** Makes a profile current with each device's first message, because they never ask for profiles. Returns its pId. */
export async function install(
  enemy: Enemy,
  devices: EnemyDevice[],
  purposes: object[],
  account: EnemyAccount = enemy.account,
): Promise<string> {
  const body = { deviceAuthUuids: devices.map(({ uuid }) => uuid), purposes };
  const options = { body, token: account.token };
  const { text } = await demand(enemy, 'POST', '/v2/devices/profile', options);
  return (JSON.parse(text) as { pId: string }).pId;
}

export type Flood = {
  devices: EnemyDevice[];
  /** Below `up/`. */
  topic?: string;
  payload: (device: number, seq: number) => Buffer | string | null;
  inFlight?: number;
  ratePerSecond?: number;
};

/** Devices that send as fast as they may, and reconnect when they are disconnected. */
export async function flood(
  enemy: Enemy,
  { devices, topic = 'measurements', payload, inFlight = 10, ratePerSecond }: Flood,
  signal: AbortSignal,
): Promise<void> {
  const overheadBytes = 60;
  const fleet = createFleet({
    host: '127.0.0.1',
    port: enemy.mqttPort,
    localAddress: enemy.address,
    devices: devices.map(({ uuid, token }) => ({
      clientId: uuid,
      username: uuid,
      password: token,
      topic: `devices/${uuid}/up/${topic}`,
    })),
    inFlight,
    reconnectDelayMs: 100,
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    payload(device, seq) {
      const bytes = signal.aborted ? null : payload(device, seq);
      if (bytes === null) return null;
      enemy.tally.sent(Buffer.byteLength(bytes) + overheadBytes);
      enemy.tally.count('sent');
      return bytes;
    },
    onAcknowledged: () => enemy.tally.count('acknowledged'),
    onOffline: () => enemy.tally.count('connections lost'),
  });
  // Devices that are never let in must not keep the others from sending.
  fleet.start();
  await Promise.race([
    fleet.connect(),
    new Promise((resolve) => signal.addEventListener('abort', resolve)),
  ]);
  fleet.kick();
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await Promise.race([fleet.close('reset'), delay(1_000)]);
}

/** Messages with measurements of one sense. Each has its own time, recent enough to notify people. */
export function createReadings(sId = '0x01') {
  const next: number[] = [];
  const startTs = Date.now() - 600_000;
  return (
    device: number,
    count: number,
    valOf: (n: number) => number = (n) => n % 1_000,
  ): string => {
    const first = next[device] ?? 0;
    next[device] = first + count;
    const items = Array.from({ length: count }, (_, i) => ({
      sId,
      val: valOf(first + i),
      ts: startTs + first + i,
    }));
    return JSON.stringify(items);
  };
}
