import { Gauge } from 'prom-client';
import { type DisabledAccounts, startDisabledAccounts } from '../accounts/disabled.ts';
import { type Bus, createLocalBus } from '../bus/bus.ts';
import { startRedisBus } from '../bus/redis.ts';
import { believe } from '../clock/service-clock.ts';
import type { Config } from '../config/config.ts';
import { deriveKeys, type Keys } from '../config/keys.ts';
import type { Database } from '../db/database.ts';
import type { SharedDatabase } from '../db/shares.ts';
import { monotonicClock } from '../lib/clock.ts';
import type { Clocks, MonotonicClock } from '../lib/clock-readings.ts';
import type { ConnectionPlaces } from '../lib/connection-places.ts';
import { UnreadBodies } from '../lib/request-body.ts';
import { LastByOthers } from '../lib/fair-queue.ts';
import type { Log, ServiceLog } from '../log/logger.ts';
import { createMetrics, type Metrics, observeShares } from '../metrics/observe.ts';
import { checkRedis } from '../process/check.ts';
import { type LimitsOf, type QuotaOverrides, startOverrides } from '../quotas/quotas.ts';
import { settleSecret } from '../secret-check/secret-check.ts';
import {
  canWrite,
  checkWrites,
  databaseAnswers,
  type Ingress,
  type HealthWatch,
  type Readiness,
  type Disposables,
  startHealthWatch,
} from './lifecycle.ts';
import { type Memory, startMemory, startPlaces } from './resources.ts';
import {
  type ClockParts,
  type KeptHistory,
  openStorage,
  type OpenStorage,
  startClock,
  startKeptHistory,
} from './storage.ts';

/** What both halves of the service use. */
export type Shared = ClockParts & {
  config: Config;
  log: ServiceLog;
  disposables: Disposables;
  storage: OpenStorage;
  db: Database;
  /** Attributes the database work of a request to its account. */
  beginWork: SharedDatabase['beginWork'];
  bus: Bus;
  keys: Keys;
  metrics: Metrics;
  ingress: Ingress;
  /** Each part adds the conditions for receiving work here. */
  readiness: Readiness;
  /** What a read does not reveal: whether commits return, and whether sessions can be written. */
  health: HealthWatch;
  limitsOf: LimitsOf;
  loginsOf: QuotaOverrides['loginsOf'];
  /** Accounts that the operator has disabled. */
  disabled: DisabledAccounts;
  memory: Memory;
  /** The connections that this process may have, for HTTP and MQTT. */
  places: ConnectionPlaces;
  unreadBodies: UnreadBodies;
  /** When accounts last made requests or imports here: meanwhile devices of other accounts do not catch up. */
  requests: LastByOthers;
  publicUrl: PublicUrl;
  kept: KeptHistory;
};

type SharedOptions = Pick<Shared, 'disposables' | 'ingress' | 'readiness'> & {
  /** For the database. */
  connectionString: string;
  /** Called once when a later version has moved the tables. */
  onMoved: (lines: string[]) => void;
  /** Absent: the database's clock, and this machine's. */
  clocks?: Clocks | undefined;
};

export async function startShared(
  config: Config,
  log: ServiceLog,
  { disposables, ingress, readiness, connectionString, onMoved, clocks: given }: SharedOptions,
): Promise<Shared> {
  const storage = await openStorage(config, connectionString, log, disposables);
  const shares = storage.openShared(config.database.maxConnections);
  const { db } = shares;
  storage.watchTables(db, onMoved);
  readiness.add('database', () => databaseAnswers(db));
  // Before anything derives a key: tokens signed with a wrong secret could not be told apart later.
  const secret = await settleSecret(db, config, log.child({ component: 'secret' }));
  const bus = await startBus(config, log, given?.monotonicClock ?? monotonicClock);
  disposables.add('bus', () => bus.close());
  const keys = deriveKeys(secret, config.previousSecret ?? undefined);
  const metrics = createMetrics();
  const { limitsOf, loginsOf } = await startQuotas(db, config, log, disposables);
  const disabled = await startDisabled(db, log, disposables);
  const noteRemoved = bus.subscribe('removed', ({ accountId }) => disabled.note(accountId));
  disposables.add('removed accounts', noteRemoved);
  const { memory: settings } = config;
  const { registry } = metrics;
  const memory = startMemory({
    settings,
    log: log.child({ component: 'memory' }),
    registry,
    readiness,
    disposables,
  });
  observeShares(metrics.registry, shares.countWaiting);
  const parts = {
    config,
    log,
    disposables,
    storage,
    db,
    beginWork: shares.beginWork,
    bus,
    keys,
    metrics,
    ingress,
    readiness,
  };
  const clocks = given
    ? { ...given, believed: believe(given.clock), onClockMoved: () => undefined }
    : await startClock({ config, db, log, disposables, registry });
  const places = startPlaces({
    config,
    log: log.child({ component: 'service' }),
    registry,
    monotonicClock: clocks.monotonicClock,
  });
  const publicUrl = createPublicUrl(config);
  const requests = new LastByOthers();
  const health = startHealth(parts, clocks);
  const kept = await startKeptHistory({ ...parts, ...clocks });
  const quotas = { limitsOf, loginsOf };
  return {
    ...parts,
    ...clocks,
    ...quotas,
    kept,
    health,
    disabled,
    memory,
    places,
    unreadBodies: new UnreadBodies(),
    requests,
    publicUrl,
  };
}

function startHealth(
  {
    log,
    storage,
    metrics: { registry },
    readiness,
    disposables,
  }: Pick<Shared, 'log' | 'storage' | 'metrics' | 'readiness' | 'disposables'>,
  clocks: Clocks,
): HealthWatch {
  new Gauge({
    name: 'database_last_commit_timestamp_seconds',
    help: 'When this process last committed a transaction; 0: it has not yet.',
    registers: [registry],
    collect() {
      this.set((storage.lastCommit.ts ?? 0) / 1_000);
    },
  });
  const health = startHealthWatch({ log: log.child({ component: 'health' }), registry, ...clocks });
  health.add('database-writes', checkWrites(storage.writeProbe));
  readiness.add('database-writes', () => canWrite(health));
  disposables.add('health', async () => {
    await health.close();
    storage.writeProbe.close();
  });
  return health;
}

/** Before the database, which may have to be created first. */
export async function checkRedisOf({ redisUrl: url }: Config, log: ServiceLog): Promise<void> {
  const onAway = (why: string) =>
    log
      .child({ component: 'redis' })
      .warn({ event: 'redis.away', why }, 'Redis is unreachable; starting without it.');
  if (url !== null) await checkRedis({ url, onAway });
}

async function startQuotas(
  db: Database,
  { quotas }: Config,
  log: ServiceLog,
  disposables: Disposables,
): Promise<QuotaOverrides> {
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unread', err },
      'The quotas of accounts could not be read; the last known ones stay in force.',
    );
  const limits = await startOverrides({ db, quotas, onError });
  disposables.add('quotas', () => limits.close());
  return limits;
}

async function startDisabled(
  db: Database,
  log: ServiceLog,
  disposables: Disposables,
): Promise<DisabledAccounts> {
  const accountsLog = log.child({ component: 'accounts' });
  const onError = (err: unknown) =>
    accountsLog.warn(
      { event: 'accounts.unread', err },
      'The disabled accounts could not be read; the last known ones are used.',
    );
  const disabled = await startDisabledAccounts({ db, onError });
  disposables.add('disabled accounts', () => disabled.close());
  return disabled;
}

/** Logged by each part that could not reach Redis. */
export const tellOfRedis = (log: Log) =>
  log.info({ event: 'redis.back' }, 'Redis is reachable again.');

async function startBus(
  { redisUrl, role }: Config,
  serviceLog: ServiceLog,
  monotonicClock: MonotonicClock,
): Promise<Bus> {
  const log = serviceLog.child({ component: 'bus' });
  const onListenerError = (err: unknown, channel: string) =>
    log.error({ event: 'bus.listener-failed', err, channel }, 'A bus listener failed.');
  if (redisUrl === null) {
    if (role.name !== 'all')
      log.warn(
        { event: 'bus.alone' },
        'REDIS_URL is not set: this process and the others cannot notify each other, so streams and messages to devices are delayed or missed. Give all processes the same REDIS_URL.',
      );
    return createLocalBus({ onListenerError });
  }
  const onError = (err: unknown) =>
    log.warn(
      { event: 'bus.degraded', err },
      'Redis does not answer; other processes are not notified until it does.',
    );
  const onBack = () => tellOfRedis(log);
  return startRedisBus({ url: redisUrl, monotonicClock, onListenerError, onError, onBack });
}

/** The base URL of links in mails. */
type PublicUrl = {
  /** Without a slash at its end. */
  get(): string;
  /** The port of HTTP. If any free one was requested, it is known only once HTTP listens. */
  listensOn(port: number): void;
};

export function createPublicUrl({
  publicUrl,
  publicHost,
  httpListen,
}: Pick<Config, 'publicUrl' | 'publicHost' | 'httpListen'>): PublicUrl {
  let { port } = httpListen;
  const host = publicHost.includes(':') ? `[${publicHost}]` : publicHost;
  return {
    get: () => publicUrl ?? `http://${host}:${port}`,
    listensOn: (listening) => void (port = listening),
  };
}
