import process from 'node:process';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Settings } from '../config/settings.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { ConnectionPlaces, type Listener } from '../lib/connection-places.ts';
import type { Log, Logger } from '../log/logger.ts';
import { startPressure } from '../process/memory-pressure.ts';
import { findHeapLimit } from '../process/v8.ts';
import type { Readiness, Disposables } from './lifecycle.ts';

/** The memory limit of each part, and what to call when memory is short. */
export type Memory = {
  deviceBytes: number;
  requestBytes: number;
  /** For data that waits for the readers of streams. */
  streamBytes: number;
  isShort(): boolean;
  /** `relieve`: drops what can be read again. */
  addCache(relieve: () => void): void;
  /** `pause`: stops taking anything in while its argument is true. Returns a function that removes it. */
  addIntake(pause: (isShort: boolean) => void): () => void;
};

/** Parts of V8's heap limit, unless the configuration sets bytes. */
const deviceShare = 1 / 4;
const requestShare = 1 / 8;
const streamShare = 1 / 16;

export function startMemory(deps: {
  settings: Settings['memory'];
  log: Logger;
  registry: Registry;
  readiness: Readiness;
  disposables: Disposables;
}): Memory {
  const { settings, log, registry, readiness, disposables } = deps;
  const limitBytes = findHeapLimit();
  const caches: (() => void)[] = [];
  const intakes = new Set<(isShort: boolean) => void>();
  const gauge = new Gauge({
    name: 'memory_short',
    help: 'Whether memory is short: 1 while uploads and requests are asked to come back later.',
    registers: [registry],
  });
  const pressure = startPressure({
    shortAt: settings.comeLaterAt,
    enoughAt: settings.goOnAt,
    relieve: () => caches.forEach((relieve) => relieve()),
    onChange(isShort, use) {
      gauge.set(isShort ? 1 : 0);
      if (isShort) log.warn({ event: 'memory.short', ...use }, 'Memory is short.');
      else log.info({ event: 'memory.enough', ...use }, 'Enough memory is free again.');
      for (const pause of intakes) pause(isShort);
    },
  });
  disposables.add('memory', () => pressure.close());
  readiness.add('memory', () => !pressure.isShort());
  return {
    deviceBytes: settings.deviceBytes ?? limitBytes * deviceShare,
    requestBytes: settings.requestBytes ?? limitBytes * requestShare,
    streamBytes: limitBytes * streamShare,
    isShort: pressure.isShort,
    addCache: (relieve) => void caches.push(relieve),
    addIntake(pause) {
      intakes.add(pause);
      pause(pressure.isShort());
      return () => void intakes.delete(pause);
    },
  };
}

/**
 * The most files that the process opens for itself: connections to the database, listening sockets, files, and
 * connections to webhooks and mail servers (`notifications/notifications.ts`).
 */
const ownFiles = 1_024;
/** One line per listener in this time. */
const logEveryMs = 60_000;

/**
 * How many connections a process may have if it may open this many files: all but `ownFiles`, but at least half. Each
 * listener leaves a quarter of the connections to the other.
 */
export function shareFiles(openFiles: number): { most: number; kept: number } {
  const most = Math.max(Math.floor(openFiles / 2), openFiles - ownFiles);
  return { most, kept: Number.isFinite(most) ? Math.floor(most / 4) : 0 };
}

/**
 * How many files this process may open (`ulimit -n`; Node raises it to the hard limit); `Infinity` if no limit is
 * known.
 */
function openFilesLimit(): number {
  // Otherwise the report looks up names of peers, and includes the environment with its secrets.
  Object.assign(process.report, { excludeNetwork: true, excludeEnv: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | string } };
  };
  const soft = Number(userLimits?.open_files?.soft);
  return soft > 0 ? soft : Infinity;
}

type PlacesDeps = {
  config: Pick<Config, 'role' | 'http'>;
  log: Log;
  registry: Registry;
  monotonicClock: MonotonicClock;
};

/** The connections that this process may have, by the files that it may open. Logs a warning if they are few. */
export function startPlaces({ config, log, registry, monotonicClock }: PlacesDeps) {
  const openFiles = openFilesLimit();
  const { most, kept } = shareFiles(openFiles);
  if (openFiles < 2 * ownFiles)
    log.warn(
      { event: 'connections.few', openFiles, connections: most },
      `This process may open only ${openFiles} files (ulimit -n). It accepts ${most} connections, so a burst of webhooks can leave the database without any. Allow at least ${2 * ownFiles}.`,
    );
  const places = new ConnectionPlaces({
    most,
    kept: config.role.name === 'all' ? kept : 0,
    ofListener: { http: config.http.connections, mqtt: Infinity },
    onFull: tellOfFull({ log, registry, monotonicClock }),
  });
  new Gauge({
    name: 'connections_open',
    help: 'Open client connections, by listener.',
    labelNames: ['listener'],
    registers: [registry],
    collect() {
      for (const listener of ['http', 'mqtt'] as const)
        this.set({ listener }, places.countOf(listener));
    },
  });
  return places;
}

type Full = { closed: number; refused: number; sinceMs: number };

/** Counts closed and refused connections, and logs them once a minute while that continues. */
function tellOfFull({ log, registry, monotonicClock }: Omit<PlacesDeps, 'config'>) {
  const counter = new Counter({
    name: 'connections_made_way_total',
    help: 'Connections closed to make room for others, or refused, by listener.',
    labelNames: ['listener', 'outcome'],
    registers: [registry],
  });
  const never = (): Full => ({ closed: 0, refused: 0, sinceMs: -Infinity });
  const unlogged: Record<Listener, Full> = { http: never(), mqtt: never() };
  return (listener: Listener, outcome: 'closed' | 'refused', count: number): void => {
    counter.inc({ listener, outcome }, count);
    const full = unlogged[listener];
    full[outcome] += count;
    const monotonicMs = monotonicClock();
    if (monotonicMs - full.sinceMs < logEveryMs) return;
    const { closed, refused } = full;
    unlogged[listener] = { closed: 0, refused: 0, sinceMs: monotonicMs };
    log.warn(
      { event: 'connections.full', listener, closed, refused },
      'No room for a new connection: idle connections of the address that has most were closed, or the new one was refused.',
    );
  };
}
