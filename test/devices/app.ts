import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import defaults from '../../config/default.ts';
import { auditRoutes } from '../../src/audit/audit.ts';
import { type BusMessages, createLocalBus } from '../../src/bus/bus.ts';
import type { Actions } from '../../src/contract/actions.ts';
import { createDeviceRemoval, detachDevices } from '../../src/devices/remove.ts';
import { deviceRoutes } from '../../src/devices/routes.ts';
import { DomainError } from '../../src/errors.ts';
import { createClearing } from '../../src/history/clear-removed.ts';
import { startHttp } from '../../src/http/server.ts';
import { deriveKeys } from '../../src/config/keys.ts';
import { findNewest } from '../../src/measurements/store.ts';
import { createInstall, profileRoutes } from '../../src/profiles/routes.ts';
import { createExploring } from '../../src/purposes/cases.ts';
import { purposeRoutes } from '../../src/purposes/purposes.ts';
import { createExports } from '../../src/quotas/exports.ts';
import { quotaRoutes } from '../../src/quotas/routes.ts';
import type { QuotaSettings } from '../../src/quotas/settings.ts';
import { call, type CallOptions } from '../accounts/app.ts';
import { openTestDatabase, testDatabase } from '../support/database.ts';
import type { DatabaseKind, TestDatabase } from '../support/database.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

export type App = Awaited<ReturnType<typeof startApp>>;

export const { deviceTokens: keys, secretIds } = deriveKeys(
  'a secret of the tests, long enough to be one',
);

export const connectors = [
  {
    id: 1,
    kind: 'mqtt' as const,
    name: 'one',
    protocol: 'mqtt',
    host: 'one.example.com',
    port: 1883,
  },
  {
    id: 2,
    kind: 'mqtt' as const,
    name: 'two',
    protocol: 'mqtt',
    host: 'two.example.com',
    port: 1884,
  },
];

export const configuration = {
  device: { name: 'probe', swName: 'fw', swVersion: '1.2', hwVersion: 'b', serial: 's-1' },
  module: [
    {
      moduleId: 'm1',
      moduleName: 'climate',
      senses: [
        { sId: '0x01', min: -40, max: 85, minInterval: 1000 },
        { sId: '0x02', max: 100 },
      ],
    },
  ],
};

/** A purpose of two states; 0x01 above `limit` leads from the first to the second. */
export function purpose(puId: number, limit = 20) {
  const causes = [{ sId: '0x01', orderId: 1, thresholds: { isGt: limit } }];
  const actions: Actions = { engine: { gotoStId: 2 } };
  return {
    puId,
    name: `purpose ${puId}`,
    initStId: 1,
    states: [
      { stId: 1, name: 'calm', events: [{ evId: 1, name: 'warm', causes, actions }] },
      { stId: 2, name: 'alarm', events: [] },
    ],
  };
}

/** Repeats a request as long as the answer is 503, as a client does: a busy process asks for it. */
export async function untilTaken(send: () => ReturnType<App['call']>): ReturnType<App['call']> {
  for (;;) {
    const answer = await send();
    if (answer.status !== 503) return answer;
    await delay(Number(answer.headers.get('retry-after')) * 1_000);
  }
}

export type AppOptions = {
  /** Another process of the same installation: its own connections to the same database. */
  beside?: TestDatabase;
  /** Those that differ from the defaults. */
  quotas?: Partial<QuotaSettings>;
  kind?: DatabaseKind;
  /** How long a request waits for what purposes can do (`createExploring`). */
  warnMs?: number;
};

/** Devices, purposes and profiles on a port of their own; the account's number serves as a bearer token. */
export async function startApp({ beside, kind, warnMs = 0, ...options }: AppOptions = {}) {
  const exploring = createExploring({ warnMs });
  const warnOf = { warnOfExplored: exploring.warnOf, warnOfSms: async () => [] };
  const database = beside ?? (await testDatabase(kind));
  const db = beside ? openTestDatabase(beside.url) : database.db;
  const quotas: QuotaSettings = { ...defaults.quotas, ...options.quotas };
  const limitsOf = () => quotas;
  const bus = createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
  const told: { channel: string; message: unknown }[] = [];
  for (const channel of ['device', 'access'] as const) {
    bus.subscribe(channel, (message: BusMessages[typeof channel]) => {
      told.push({ channel, message });
    });
  }
  const purged: number[][] = [];
  const purging = { fails: false, failed: 0 };
  const clearing = createClearing({
    db,
    monotonicClock,
    detach: (accountId, limit) => detachDevices(db, bus, accountId, limit),
    purge: async (_db, { deviceIds }) => {
      if (purging.fails) throw new Error('no purge now');
      purged.push(deviceIds);
      return true;
    },
    onError: () => void (purging.failed += 1),
  });
  const removal = createDeviceRemoval({ db, bus, startClearing: clearing.start });
  const routes = [
    ...profileRoutes({
      db,
      install: createInstall({ db, bus, quotas, limitsOf, ...warnOf }),
    }),
    ...deviceRoutes({
      db,
      bus,
      keys,
      secretId: secretIds[0] ?? '',
      listConnectors: () => connectors,
      findByValues: async () => ({ in: null, notIn: null }),
      removeDevice: (...device) => removal.removeDevice(...device),
      findNewest,
      onConfigured: async () => undefined,
      quotas,
      limitsOf,
      exports: createExports({ limitOf: () => 2, monotonicClock }),
      newUuid: randomUUID,
      startJob: async () => {
        throw new Error('There are no jobs here.');
      },
      listJobDevices: () => Promise.resolve(null),
      takeLabelLimits: async () => undefined,
      planChange: () => Promise.reject(new Error('no jobs')),
      planBack: () => Promise.resolve(null),
      planByLabel: () => ({}),
      previewChange: () => Promise.reject(new Error('no jobs')),
      isAhead: () => true,
    }),
    ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: () => [], exploring }),
    ...quotaRoutes({ db, quotas, retention: defaults.retention }),
    ...auditRoutes({ db }),
  ];
  const server = await startHttp({
    routes,
    authenticate: async (token) => {
      const accountId = Number(token);
      if (!accountId) throw new DomainError('unauthenticated', 'No such token.');
      return { accountId, accountUuid: '', sessionId: randomUUID() };
    },
    log: pino({ level: 'silent' }),
    clock: Date.now,
    host: '127.0.0.1',
    port: 0,
  });
  const url = `http://127.0.0.1:${server.port}`;

  const app = {
    url,
    database,
    db,
    bus,
    told,
    purged,
    purging,
    removal,
    clearing,
    call: (method: string, path: string, rest: CallOptions = {}) => call(url, method, path, rest),
    /** The token of a new account. */
    async account(): Promise<string> {
      const { rows } = await db.query<{ id: number }>(
        `insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
         returning id`,
      );
      return String(rows[0]?.id);
    },
    async device(token: string, body: unknown = configuration) {
      const answer = await app.call('POST', '/v2/devices', { token, body });
      const uuid = String(answer.body['deviceAuthUuid']);
      const { rows } = await db.query<{ id: number }>('select id from device where uuid = $1', [
        uuid,
      ]);
      const deviceId = rows[0]?.id ?? 0;
      const password = String(answer.body['deviceAuthToken']);
      return { uuid, deviceId, password, accountId: Number(token) };
    },
    async install(token: string, uuids: string[], purposes: unknown[] = [purpose(7)]) {
      const body = { deviceAuthUuids: uuids, purposes };
      const answer = await app.call('POST', '/v2/devices/profile', { token, body });
      if (answer.status !== 200) throw new Error(answer.text);
      return String(answer.body['pId']);
    },
    async close() {
      await server.close();
      await clearing.close();
      await exploring.close();
      await (beside ? db.close() : database.drop());
    },
  };
  return app;
}

/** The paths that an answer's problems name. */
export const pathsOf = (body: Record<string, unknown>) =>
  (body['errors'] as { path: string }[]).map(({ path }) => path);
