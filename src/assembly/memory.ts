import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Logger } from '../log/logger.ts';
import { startPressure } from '../process/memory-pressure.ts';
import { findHeapLimit } from '../process/v8.ts';
import type { Settings } from '../config/settings.ts';
import type { Readiness } from './readiness.ts';
import type { ReleaseSteps } from './shutdown.ts';

/** How much each part may hold, and who is told when memory is short. */
export type Memory = {
  deviceBytes: number;
  requestBytes: number;
  /** What waits for readers of streams. */
  streamBytes: number;
  isShort(): boolean;
  /** `relieve`: gives back what can be read again. */
  addCache(relieve: () => void): void;
  /** `pause`: stops taking anything in while it is told true. Gives back what ends that. */
  addIntake(pause: (isShort: boolean) => void): () => void;
};

export type MemoryDeps = {
  settings: Settings['memory'];
  log: Logger;
  registry: Registry;
  readiness: Readiness;
  releases: ReleaseSteps;
};

/** Parts of V8's heap limit, where the configuration names no bytes. */
const deviceShare = 1 / 4;
const requestShare = 1 / 8;
const streamShare = 1 / 16;

export function startMemory(deps: MemoryDeps): Memory {
  const { settings, log, registry, readiness, releases } = deps;
  const limitBytes = findHeapLimit();
  const caches: (() => void)[] = [];
  const intakes = new Set<(isShort: boolean) => void>();
  const gauge = new Gauge({
    name: 'memory_short',
    help: 'Whether memory is short: 1 while uploads and requests are told to come later.',
    registers: [registry],
  });
  const pressure = startPressure({
    shortAt: settings.comeLaterAt,
    enoughAt: settings.goOnAt,
    relieve: () => caches.forEach((relieve) => relieve()),
    onChange(isShort, use) {
      gauge.set(isShort ? 1 : 0);
      if (isShort) log.warn({ event: 'memory.short', ...use }, 'Memory is short.');
      else log.info({ event: 'memory.enough', ...use }, 'There is enough memory again.');
      for (const pause of intakes) pause(isShort);
    },
  });
  releases.add('memory', () => pressure.close());
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
