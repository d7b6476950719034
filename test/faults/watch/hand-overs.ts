import { setTimeout as delay } from 'node:timers/promises';
import { registerAccount } from '../../../bench/api.ts';
import { runOn } from '../../support/template.ts';
import { witnessPurpose } from '../messages.ts';
import { registerDevices } from '../register.ts';
import { createPollingDevice, insist, readAnswer, type PollingDevice } from './polling-device.ts';

/** All but the first must be 0. */
export type HandOverVerdict = {
  /** Profiles that a device received over HTTP, acknowledged and answered. */
  handOvers: number;
  /** Profiles that counted as sent before the device had returned `after`. */
  sentEarly: number;
  /** Profiles that did not count as sent once that was answered. */
  unsent: number;
  /** Answers `current` that were acknowledged but not stored. */
  uncurrent: number;
  /** Devices that receive no more profiles, or cannot accept one. */
  stuck: number;
};

export const noHandOvers: HandOverVerdict = {
  handOvers: 0,
  sentEarly: 0,
  unsent: 0,
  uncurrent: 0,
  stuck: 0,
};

/** Devices that poll over HTTP for one profile after the other. */
export type HandOvers = {
  /** Judges everything since the start, when each device has taken one more profile. */
  judge(): Promise<HandOverVerdict>;
  close(): Promise<void>;
};

export type HandOverOptions = {
  url: string;
  /** Where devices send and poll. */
  httpPort: number;
  databaseUrl: () => string;
};

const deviceCount = 3;
/** A pause between two, because an account has at most a thousand profiles. */
const pauseMs = 2_000;
const lateMs = 60_000;

export async function startHandOvers({
  url,
  httpPort,
  databaseUrl,
}: HandOverOptions): Promise<HandOvers> {
  const over = new AbortController();
  const { signal } = over;
  const account = await registerAccount(url);
  const devices = (await registerDevices(url, account.token, deviceCount)).map((device) =>
    createPollingDevice(device, `http://127.0.0.1:${httpPort}`, signal),
  );
  const verdict = { ...noHandOvers };
  const done = devices.map(() => 0);
  const broken: unknown[] = [];

  /** Begins a session again that a fault ended. */
  const install = ({ uuid }: PollingDevice) =>
    insist(signal, async (limit) => {
      const response = await fetch(`${url}/v2/devices/profile`, {
        method: 'POST',
        headers: { authorization: `Bearer ${account.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ deviceAuthUuids: [uuid], purposes: [witnessPurpose] }),
        signal: limit,
      });
      if (response.status !== 401) return readAnswer(response);
      account.token = (await logIn(url, account.email, limit)) ?? account.token;
      return null;
    });

  /** Whether the profile's state is one of these. A replaced profile tells nothing. */
  const isState = (device: PollingDevice, pId: string, states: string[]) =>
    insist(signal, async () => {
      const state = await readState(databaseUrl(), device.uuid, pId);
      return state === 'superseded' || (state !== null && states.includes(state));
    });

  async function handOver(device: PollingDevice): Promise<void> {
    await install(device);
    const pId = await device.takeProfile();
    if (!(await isState(device, pId, ['pending']))) verdict.sentEarly += 1;
    await device.acknowledge();
    if (!(await isState(device, pId, ['sent']))) verdict.unsent += 1;
    await device.sayCurrent(pId);
    if (!(await isState(device, pId, ['current']))) verdict.uncurrent += 1;
    verdict.handOvers += 1;
  }

  const running = devices.map(async (device, index) => {
    try {
      for (;;) {
        await handOver(device);
        done[index] = (done[index] ?? 0) + 1;
        await delay(pauseMs, undefined, { signal });
      }
    } catch (error) {
      if (!signal.aborted) broken.push(error);
    }
  });

  return {
    async judge() {
      const before = [...done];
      const isLate = (index: number) => done[index] === before[index];
      const untilMs = performance.now() + lateMs;
      while (before.some((_, index) => isLate(index)) && performance.now() < untilMs)
        await delay(50);
      for (const error of broken) process.stderr.write(`    hand-over: ${String(error)}\n`);
      return { ...verdict, stuck: before.filter((_, index) => isLate(index)).length };
    },
    async close() {
      over.abort();
      await Promise.all(running);
    },
  };
}

async function logIn(url: string, email: string, signal: AbortSignal): Promise<string | null> {
  const response = await fetch(`${url}/v2/accounts/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'a password of the bench' }),
    signal,
  });
  return (await readAnswer<{ accountAuthToken: string }>(response))?.accountAuthToken ?? null;
}

async function readState(url: string, uuid: string, pId: string): Promise<string | null> {
  const { rows } = await runOn(url, (client) =>
    client.query<{ state: string }>(
      `select p.state from device_profile p join device d on d.id = p.device_id
        where d.uuid = $1 and p.profile_id = $2`,
      [uuid, pId],
    ),
  );
  return rows[0]?.state ?? null;
}
