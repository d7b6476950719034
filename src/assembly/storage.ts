import { randomUUID } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import { bringBack } from '../clock/after-leap.ts';
import {
  type BelievedTime,
  type ServiceClockOptions,
  startServiceClock,
} from '../clock/service-clock.ts';
import type { Config } from '../config/config.ts';
import {
  createPatience,
  type Database,
  type DatabaseOptions,
  openDatabase,
  withTimeout,
} from '../db/database.ts';
import { startEmbeddedDatabase } from '../db/embedded/embedded.ts';
import { processName } from '../db/lease.ts';
import { migrate } from '../db/migrate.ts';
import { type SchemaWatch, watchSchema } from '../db/schema-state.ts';
import { type SharedDatabase, shareOut } from '../db/shares.ts';
import type { Sql } from '../db/sql.ts';
import { describeStorage } from '../db/storage.ts';
import { createWriteProbe, type WriteProbe } from '../db/write-probe.ts';
import {
  estimateLoss,
  inForce,
  listRetention,
  type Retention,
  type RetentionChange,
  settleRetention,
} from '../history/retention.ts';
import { monotonicClock, systemClock } from '../lib/clock.ts';
import type { Clocks, WallMs } from '../lib/clock-readings.ts';
import { startEvery } from '../lib/wait.ts';
import type { ServiceLog } from '../log/logger.ts';
import { version } from '../version.ts';
import type { Disposables } from './lifecycle.ts';

export type OpenStorage = {
  connectionString: string;
  /** For a thread that opens connections of its own. */
  connection: Pick<
    DatabaseOptions,
    'connectionString' | 'schema' | 'applicationName' | 'connectTimeoutMs' | 'statementTimeoutMs'
  >;
  /** Opens a separate pool, so that requests do not wait for work of devices. */
  open(maxConnections: number, options?: Partial<DatabaseOptions>): Database;
  /** A pool that all accounts share. It fails soon with `unavailable` if the server does not answer. */
  openShared(maxConnections: number): SharedDatabase;
  /** When a transaction of this process last committed, ms since the epoch; null: never. */
  readonly lastCommit: { readonly ts: number | null };
  /** Tries whether a commit returns. */
  writeProbe: WriteProbe;
  /** Watches, through `sql`, whether a later version has moved the tables. Calls `onMoved` once. */
  watchTables(sql: Sql, onMoved: (lines: string[]) => void): void;
};

/** A request waits for a hanging database twice this long, plus a round trip: less than 2 s. */
const patienceMs = 700;

/** How long a probe's commit may hang without being given up; meanwhile it is examined. */
const probeTimeoutMs = 3_600_000;

/** Migrates the database to this program's schema, and opens connections to it. */
export async function openStorage(
  config: Config,
  connectionString: string,
  serviceLog: ServiceLog,
  disposables: Disposables,
): Promise<OpenStorage> {
  const log = serviceLog.child({ component: 'database' });
  const storage = await migrate(connectionString, { log });
  log.info({ event: 'database.storage' }, `The history is stored in ${describeStorage(storage)}.`);

  const onIdleError = (err: unknown) =>
    log.warn(
      { event: 'database.connection-lost', err },
      'A database connection was lost; another one is opened when needed.',
    );
  const { connectTimeoutMs, statementTimeoutMs } = config.database;
  let watch: SchemaWatch | undefined;
  const lastCommit: NonNullable<DatabaseOptions['lastCommit']> = { ts: null, clock: systemClock };
  const connection = {
    connectionString,
    schema: storage.schema,
    applicationName: processName(randomUUID().slice(0, 8)),
    connectTimeoutMs,
    statementTimeoutMs,
  };
  const defaults = {
    ...connection,
    onIdleError,
    lastCommit,
    onMissingTable: () => watch?.look(),
  };
  const open = (maxConnections: number, options: Partial<DatabaseOptions> = {}) => {
    const database = openDatabase({ ...defaults, ...options, maxConnections });
    disposables.add('database connections', (withinMs) => database.close(withinMs));
    return database;
  };
  const openShared = (connections: number) => {
    const pinger = open(1, { statementTimeoutMs: patienceMs });
    const ping = () => withTimeout(pinger.query('select 1'), patienceMs);
    const wait = createPatience({ patienceMs, ping });
    return shareOut(open(connections), { connections, wait, placeTimeoutMs: statementTimeoutMs });
  };
  const watchTables = (sql: Sql, onMoved: (lines: string[]) => void) => {
    watch = watchSchema({ sql, schema: storage.schema, version, onMoved });
    disposables.add('watch of the tables', watch.stop);
  };
  const look = open(1, { statementTimeoutMs: patienceMs });
  const writeProbe = createWriteProbe({
    open: () => openDatabase({ ...defaults, maxConnections: 1, answerTimeoutMs: probeTimeoutMs }),
    look,
  });
  return { connectionString, connection, open, openShared, watchTables, writeProbe, lastCommit };
}

/** The connection string of the configured database, or of the embedded one, which it starts. */
export async function findDatabase(
  config: Config,
  serviceLog: ServiceLog,
  disposables: Disposables,
): Promise<string> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const log = serviceLog.child({ component: 'database' });
  const embedded = await startEmbeddedDatabase({ dataDir: config.dataDir, log });
  disposables.add('embedded database', (withinMs) => embedded.stop(withinMs));
  return embedded.connectionString;
}

const readEveryMs = 60_000;
/** Half the upkeep's interval of an hour; at the start it runs twice in a row. */
const sayAgainMs = 30 * 60_000;

/** How long the history is kept. */
export type KeptHistory = {
  /** The retention in force, as of at most a minute ago. */
  days: () => Retention;
  /** Settles the configured retention with the one in force, and returns the result. */
  settle: () => Promise<Retention>;
};

type KeptDeps = Pick<ClockParts, 'believed' | 'monotonicClock'> & {
  db: Database;
  config: Config;
  log: ServiceLog;
  disposables: Disposables;
};

/**
 * Runs in each process, so that the longest configured retention applies. Late messages are judged by the retention in
 * force, not by one that is only announced.
 */
export async function startKeptHistory(deps: KeptDeps): Promise<KeptHistory> {
  const { db, config, log, disposables, believed, monotonicClock } = deps;
  const say = sayRetention(deps);
  let days = inForce([], config.retention);
  let saidMs = -Infinity;
  const onError = (err: unknown) =>
    log
      .child({ component: 'history' })
      .warn(
        { event: 'history.retention-unread', err },
        'The retention time of the history could not be read; the last known one is used.',
      );
  const read = async () => (days = inForce(await listRetention(db), config.retention));
  const settle = async () => {
    const nowTs = believed.believedTs();
    const changes = await settleRetention(db, config.retention, nowTs);
    const isSaid = monotonicClock() - saidMs < sayAgainMs;
    await say(isSaid ? changes.filter(({ kind }) => kind !== 'waiting') : changes, nowTs);
    if (changes.length > 0) saidMs = monotonicClock();
    return read();
  };
  await settle();
  disposables.add(
    'retention',
    startEvery(readEveryMs, () => read().then(() => undefined, onError)),
  );
  return { days: () => days, settle };
}

/** Logs what a shorter retention will delete, and when. */
function sayRetention({ db, log }: Pick<KeptDeps, 'db' | 'log'>) {
  const historyLog = log.child({ component: 'history' });
  return async (changes: RetentionChange[], nowTs: WallMs | null): Promise<void> => {
    for (const change of changes) {
      const { what, toDays } = change;
      if (change.kind === 'taken-back') {
        historyLog.info(
          { event: 'history.retention-kept', what, days: change.days },
          `The retention of ${what} does not change: ${toDays} days were announced, but ${change.days} are configured here.`,
        );
        continue;
      }
      const loss = await estimateLoss(db, { what, toDays, nowTs: nowTs ?? 0 });
      const { rows, chunks } = loss;
      const gone = `about ${rows} ${what}${chunks > 0 ? ` in ${chunks} chunks` : ''} older than ${toDays} days`;
      const from = change.fromDays === null ? 'everything' : `${change.fromDays} days`;
      if (change.kind === 'shortened') {
        historyLog.warn(
          { event: 'history.retention-shortened', ...change, ...loss },
          `The retention of ${what} is now ${toDays} days, previously ${from}: ${gone} are being deleted.`,
        );
        continue;
      }
      historyLog.warn(
        { event: 'history.retention-shortens', ...change, ...loss },
        `The configuration keeps ${what} for ${toDays} days, but ${from} is in force: ${gone} will be deleted a day after this warning first appeared. To keep them, restore the old retention in all processes before then.`,
      );
    }
  };
}

/** The current time, and whether anything may be deleted by it. */
export type ClockParts = Clocks & {
  believed: BelievedTime;
  /** Calls `forget` when the clock was set: what was handed out by the earlier time is no longer valid. */
  onClockMoved(forget: () => void): void;
};

const doubtWords = {
  start: 'The clock is behind the last believed time, or more than two days ahead of it.',
  leap: 'The clock was set, or another server with a different clock took over.',
  shared: 'Another process found the clock in doubt.',
};

const beliefWords = {
  back: 'The clock is where it should be again.',
  steady: 'The clock has run for an hour without being set.',
  shared: 'Another process or the operator confirmed the clock.',
};

/**
 * Starts the service's clock. All processes use the database's. Whether it is believed is logged, and exported as a
 * metric.
 */
export async function startClock({
  config,
  db,
  log,
  disposables,
  registry,
}: {
  config: Pick<Config, 'ingest' | 'alarms'>;
  db: Sql;
  log: ServiceLog;
  disposables: Disposables;
  registry: Registry;
}): Promise<ClockParts> {
  const clockLog = log.child({ component: 'database' });
  const listeners: (() => void)[] = [];
  const onChange: ServiceClockOptions['onChange'] = (change) => {
    if (change.to === 'doubted')
      clockLog.warn(
        {
          event: 'clock.doubted',
          reason: change.reason,
          aheadSeconds: Math.round(change.aheadMs / 1_000),
        },
        `The database's clock is in doubt: the service deletes nothing by it. ${doubtWords[change.reason]} If the clock is right, run: npm run clock -- believe.`,
      );
    else
      clockLog.info(
        { event: 'clock.believed', reason: change.reason },
        `The database's clock is trusted again. ${beliefWords[change.reason]}`,
      );
  };
  const clock = await startServiceClock({
    db,
    monotonicClock,
    onChange,
    async bringBack(nowTs) {
      const { ringMaxAgeMs } = config.ingest;
      const { reportedForMs } = config.alarms;
      const rows = await bringBack(db, nowTs, { ringMaxAgeMs, reportedForMs });
      if (Object.keys(rows).length > 0)
        clockLog.info(
          { event: 'clock.brought-back', rows },
          'Times written while the clock was ahead were corrected, so nothing waits for them.',
        );
    },
    onError: (err) =>
      clockLog.warn(
        { event: 'clock.unread', err },
        "The database's time could not be read; the last known difference is used.",
      ),
    onMoved: (byMs) => {
      for (const forget of listeners) forget();
      clockLog.warn(
        { event: 'clock.moved', byMs },
        "The database's clock was set; the service's time jumps with it.",
      );
    },
  });
  disposables.add('clock', () => clock.close());
  observe(registry, clock);
  return {
    clock: clock.now,
    monotonicClock,
    believed: clock,
    onClockMoved: (forget) => void listeners.push(forget),
  };
}

function observe(registry: Registry, { believedTs, doubtSpanMs }: BelievedTime): void {
  new Gauge({
    name: 'clock_in_doubt',
    help: "1 while the service's clock is in doubt and nothing is deleted by it, otherwise 0.",
    registers: [registry],
    collect() {
      this.set(believedTs() === null ? 1 : 0);
    },
  });
  new Gauge({
    name: 'clock_ahead_seconds',
    help:
      'How far the clock is ahead of where it should be, while it is in doubt and for ten ' +
      'minutes after that; otherwise 0.',
    registers: [registry],
    collect() {
      this.set(-doubtSpanMs() / 1_000);
    },
  });
}
