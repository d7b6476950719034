import { setTimeout as delay } from 'node:timers/promises';
import { call, registerAccount } from '../../../bench/api.ts';
import { startHookReceiver, type HookReceiver } from '../../support/hook-receiver.ts';
import { noCommands, startCommands, type CommandVerdict } from './commands.ts';
import type { Evidence, Told } from './evidence.ts';
import { noHandOvers, startHandOvers, type HandOverVerdict } from './hand-overs.ts';
import { describeWrong, judgeAlarms, noWrongs, type AlarmVerdict } from './judge-alarms.ts';
import { endLeases, readStored } from './read-evidence.ts';
import { roles } from './roles.ts';
import { startSentinels, type Sentinels } from './sentinels.ts';

export type WatchVerdict = AlarmVerdict & HandOverVerdict & CommandVerdict;

/** The verdict for a world without a watch. */
export const unwatched: WatchVerdict = { ...noWrongs, ...noHandOvers, ...noCommands };

/**
 * Devices whose alarms depend on measurements and time, with a receiver of their notifications, devices that take
 * profiles over HTTP, and devices that are given commands; from the start of a world on.
 */
export type Watch = {
  /**
   * Judges everything since the start, `toldAgain` since the last call. While something is wrong or still to be
   * delivered, it looks again: what is late is not lost.
   */
  judge(): Promise<WatchVerdict>;
  /** Sets the service's time forward. The devices know, and are silent while it happens. */
  setForward(ms: number, during: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
};

export type WatchOptions = {
  url: string;
  mqttPort: number;
  /** Where devices send over HTTP, and where those poll that take profiles; absent: none does. */
  httpPort?: number;
  pollPort?: number | undefined;
  databaseUrl: () => string;
};

/** No webhook of a living process is under way for this long. */
const leaseMs = 8_000;
const lateMs = 60_000;

export async function startWatch(options: WatchOptions): Promise<Watch> {
  const { databaseUrl, pollPort, ...service } = options;
  const receiver = await startHookReceiver();
  const { token } = await registerAccount(service.url);
  await call(service.url, 'PUT', '/v2/accounts/contacts', {
    token,
    body: { webhooks: [{ url: receiver.url, whenOver: true }] },
  });
  const sentinels = await startSentinels(service, token);
  const handOvers =
    pollPort === undefined
      ? null
      : await startHandOvers({ url: service.url, httpPort: pollPort, databaseUrl });
  const commands = await startCommands({ ...service, pollPort, databaseUrl });
  const busy = roles.filter((role) => role !== 'lively');
  let toldAgain = 0;

  async function judgeLate(): Promise<AlarmVerdict> {
    const sinceMs = performance.now();
    for (let areEnded = false; ;) {
      const waitedMs = performance.now() - sinceMs;
      if (waitedMs > leaseMs && !areEnded) {
        await endLeases(databaseUrl());
        areEnded = true;
      }
      const evidence = await read(sentinels, receiver, databaseUrl());
      const verdict = judgeAlarms(evidence);
      const { alarms: _a, toldAgain: _t, ...wrong } = verdict;
      const isRight = evidence.waiting === 0 && Object.values(wrong).every((count) => count === 0);
      if (isRight) return verdict;
      if (waitedMs > lateMs) {
        for (const line of describeWrong(evidence)) process.stderr.write(`    ${line}\n`);
        return verdict;
      }
      await delay(100);
    }
  }

  return {
    async judge() {
      const verdict = await sentinels.pausing(busy, judgeLate);
      const before = toldAgain;
      ({ toldAgain } = verdict);
      const profiles = (await handOvers?.judge()) ?? noHandOvers;
      const given = await commands.judge();
      return { ...verdict, ...profiles, ...given, toldAgain: toldAgain - before };
    },
    setForward: (ms, during) =>
      sentinels.pausing(roles, async () => {
        sentinels.setForward(ms);
        await during();
      }),
    async close() {
      await handOvers?.close();
      await commands.close();
      await sentinels.close();
      await receiver.close();
    },
  };
}

async function read(
  { devices, now }: Sentinels,
  receiver: HookReceiver,
  databaseUrl: string,
): Promise<Evidence> {
  const nowTs = now();
  const sent = devices.map(({ messages }) => messages.map((message) => ({ ...message })));
  const uuids = devices.map(({ uuid }) => uuid);
  const stored = await readStored(databaseUrl, uuids);
  const watched = devices.map(({ uuid, role, installedTs }, index) => ({
    uuid,
    role,
    installedTs,
    messages: sent[index] ?? [],
    firings: stored.devices.get(uuid)?.firings ?? [],
    alarms: stored.devices.get(uuid)?.alarms ?? [],
  }));
  const { gaps, connectors, waiting } = stored;
  return { nowTs, gaps, connectors, waiting, devices: watched, told: toldOf(receiver) };
}

function toldOf({ received }: HookReceiver): Told[] {
  return received.map(({ headers, body }) => {
    const { type, data } = JSON.parse(body) as { type: string; data: { alarmId: number } };
    return { webhookId: String(headers['webhook-id']), type, alarmId: data.alarmId };
  });
}
