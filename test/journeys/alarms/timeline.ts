import { expect } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import {
  startHookReceiver,
  type HookReceiver,
  type HookReply,
} from '../../support/hook-receiver.ts';
import { openApp, type App, type Registration } from '../app.ts';
import { connectDevice, type TestDevice } from '../device.ts';
import { testService, type TestService } from '../service.ts';

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** A whole service whose clock the test advances. Everything else is as users have it. */
export type Timeline = {
  service: TestService;
  /** The service's time, ms. */
  now(): number;
  /** Sets the clocks forward. */
  advance(ms: number): void;
  /** An account that is notified by a webhook of its own. */
  openAccount(reply?: () => HookReply): Promise<Account>;
  close(): Promise<void>;
};

export type Told = {
  type: string;
  data: Record<string, unknown> & { evId: number; title: string };
};

export type Alarm = {
  alarmId: string;
  evId: number;
  state: 'open' | 'acknowledged' | 'closed';
  told: string;
  firings: number;
  severity: string;
  beganTs: number | null;
  overTs: number | null;
  filledTs: number | null;
  beganArrivedTs: number | null;
  overArrivedTs: number | null;
  closedTs: number | null;
  notes: { on: string; text: string }[];
  closedBy?: string;
  notNotified?: string;
};

export type SenseEventView = {
  type: string;
  timestamp: number;
  notified?: boolean;
  notNotified?: string;
  cause: { engine: { evId: number } };
};

export type Account = {
  app: App;
  hooks: HookReceiver;
  /** The alarms and notices that its webhook received, in order. */
  told(): Told[];
  /** Those of a type, once there are `count`. */
  toldOf(type: string, count: number): Promise<Told[]>;
  useWebhook(): Promise<void>;
  useNobody(): Promise<void>;
  alarms(query?: string): Promise<Alarm[]>;
  addDevice(purposes: unknown[], senses?: string[]): Promise<Sensor>;
};

type Page = { body: { events: SenseEventView[] }; next: string | undefined };

/** A connected device of an account. */
export type Sensor = {
  uuid: string;
  device: TestDevice;
  /** Resolves once they are acknowledged, and so stored and evaluated. */
  measure(...measurements: { sId?: string; val: number; ts?: number }[]): Promise<void>;
  /** Sense events, oldest first. */
  events(): Promise<SenseEventView[]>;
};

export async function startTimeline(
  change: (config: Config) => Config = (config) => config,
): Promise<Timeline> {
  let aheadMs = 0;
  const clocks = {
    clock: () => Date.now() + aheadMs,
    monotonicClock: () => performance.now() + aheadMs,
  };
  const service = await testService(
    {},
    {
      clocks,
      change: (config) =>
        change({
          ...config,
          notifications: {
            ...config.notifications,
            pollIntervalMs: 50,
            webhooks: { ...config.notifications.webhooks, allowPrivateAddresses: true },
          },
        }),
    },
  );
  const ends: (() => Promise<void>)[] = [];
  return {
    service,
    now: clocks.clock,
    advance: (ms) => void (aheadMs += ms),
    async openAccount(reply) {
      const hooks = await startHookReceiver(reply);
      ends.push(hooks.close);
      return openAccount(service, hooks, ends);
    },
    async close() {
      for (const end of ends.toReversed()) await end();
      await service.close();
    },
  };
}

async function openAccount(
  service: TestService,
  hooks: HookReceiver,
  ends: (() => Promise<void>)[],
): Promise<Account> {
  const app = await openApp(service.url);
  // A message that was in transit when the clock was set forward comes again, with the same identifier.
  const told = () => [
    ...new Map(
      hooks.received.map(({ headers, body }) => [
        String(headers['webhook-id']),
        JSON.parse(body) as Told,
      ]),
    ).values(),
  ];
  const put = async (webhooks: object[]) =>
    void (await app.call('PUT', '/v2/accounts/contacts', { webhooks }));
  const account: Account = {
    app,
    hooks,
    told,
    async toldOf(type, count) {
      const ofType = () => told().filter((one) => one.type === type);
      await expect.poll(() => ofType().length, { timeout: 60_000 }).toBeGreaterThanOrEqual(count);
      return ofType();
    },
    useWebhook: () => put([{ url: hooks.url }]),
    useNobody: () => put([]),
    async alarms(query = '') {
      const { alarms } = await app.call<{ alarms: Alarm[] }>('GET', `/v2/alarms${query}`);
      return alarms;
    },
    addDevice: (purposes, senses = ['0x01']) => addDevice(app, purposes, senses, ends),
  };
  await account.useWebhook();
  return account;
}

async function addDevice(
  app: App,
  purposes: unknown[],
  senses: string[],
  ends: (() => Promise<void>)[],
): Promise<Sensor> {
  const configuration = {
    device: { name: 'Freezer' },
    module: [{ moduleId: 'probe', senses: senses.map((sId) => ({ sId })) }],
  };
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const uuid = registration.deviceAuthUuid;
  await app.call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
  const device = await connectDevice({ ...registration, keepalive: 3_600 });
  ends.push(device.end);
  return {
    uuid,
    device,
    async measure(...measurements) {
      const list = measurements.map(({ sId = '0x01', ...rest }) => ({ sId, ...rest }));
      await device.publish('up/measurements', list);
    },
    async events() {
      const events: SenseEventView[] = [];
      let path: string | undefined = `/v2/events/${uuid}?type=sense`;
      while (path !== undefined) {
        const page = (await app.page(path)) as Page;
        events.push(...page.body.events);
        path = page.next;
      }
      return events.toReversed();
    },
  };
}
