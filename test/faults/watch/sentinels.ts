import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../../../bench/api.ts';
import { createFleet } from '../../../bench/client/fleet.ts';
import { sId } from '../messages.ts';
import { registerDevices } from '../register.ts';
import type { Message } from './evidence.ts';
import { purposeOf, roles, rules, valueOf, type Role } from './roles.ts';

/** A watched device, and what it has sent so far. */
export type Sentinel = {
  uuid: string;
  token: string;
  role: Role;
  installedTs: number;
  messages: Message[];
};

/** Devices that keep sending as their role says, with one message under way, until they are closed. */
export type Sentinels = {
  devices: readonly Sentinel[];
  /** The service's time, as far as this process knows it, ms. */
  now: () => number;
  /** Keeps devices of these roles from sending during `during`, once all that they sent is acknowledged. */
  pausing<T>(who: readonly Role[], during: () => Promise<T>): Promise<T>;
  setForward: (ms: number) => void;
  close(): Promise<void>;
};

const devicesOfRole: Record<Role, number> = {
  swinging: 3,
  lasting: 2,
  'falling-silent': 2,
  lively: 2,
};
const askEveryMs = 50;
const oneByOne = { connections: 1, isKept: true, body: 'json', most: 1 } as const;

export async function startSentinels(
  { url, mqttPort, httpPort }: { url: string; mqttPort: number; httpPort?: number },
  token: string,
): Promise<Sentinels> {
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const devices: Sentinel[] = [];
  for (const role of roles) devices.push(...(await installRole(url, token, role, now)));
  const paused = new Set<Role>();
  const fleet = createFleet({
    host: '127.0.0.1',
    port: mqttPort,
    // Every second one sends over HTTP.
    devices: devices.map(({ uuid, token: password }, n) => ({
      ...(httpPort !== undefined && n % 2 === 1 ? { http: { ...oneByOne, port: httpPort } } : {}),
      clientId: uuid,
      username: uuid,
      password,
      topic: `devices/${uuid}/up/measurements`,
    })),
    reconnectDelayMs: 300,
    payload(index, seq) {
      const device = devices[index];
      if (!device || paused.has(device.role)) return null;
      const ts = now();
      const lastTs = device.messages.at(-1)?.ackedTs ?? -Infinity;
      if (ts < lastTs + rules[device.role].pauseMs(seq - 1)) return null;
      device.messages.push({ ts, ackedTs: null });
      return JSON.stringify({ sId, val: valueOf(seq), ts });
    },
    onAcknowledged(index, seq) {
      const message = devices[index]?.messages[seq];
      if (message) message.ackedTs = now();
    },
  });
  await fleet.connect();
  fleet.start();
  const asking = setInterval(fleet.kick, askEveryMs);
  const isAnswered = ({ messages }: Sentinel) => messages.at(-1)?.ackedTs !== null;
  return {
    devices,
    now,
    async pausing(who, during) {
      for (const role of who) paused.add(role);
      try {
        while (!devices.every((each) => !paused.has(each.role) || isAnswered(each)))
          await delay(20);
        return await during();
      } finally {
        paused.clear();
      }
    },
    setForward: (ms) => void (aheadMs += ms),
    async close() {
      clearInterval(asking);
      await fleet.close('reset');
    },
  };
}

async function installRole(
  url: string,
  token: string,
  role: Role,
  now: () => number,
): Promise<Sentinel[]> {
  const registered = await registerDevices(url, token, devicesOfRole[role]);
  const installedTs = now();
  await call(url, 'POST', '/v2/devices/profile', {
    token,
    body: { deviceAuthUuids: registered.map(({ uuid }) => uuid), purposes: [purposeOf(role)] },
  });
  return registered.map((one) => ({ ...one, role, installedTs, messages: [] }));
}
