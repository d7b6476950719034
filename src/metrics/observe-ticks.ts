import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { TickObserver } from '../ingest/ticks/pace.ts';

/** What is counted of the time that comes to devices by itself. */
export function observeTicks(registry: Registry): TickObserver {
  const registers = [registry];
  const ticks = new Counter({
    name: 'ticks_total',
    help: 'Evaluations of devices that time alone led to, by how they ended.',
    labelNames: ['outcome'],
    registers,
  });
  const behind = new Gauge({
    name: 'ticks_behind_seconds',
    help: 'For how long the oldest evaluation that time leads to is due.',
    registers,
  });
  return {
    done: (outcome) => ticks.inc({ outcome }),
    behind: (seconds) => behind.set(seconds),
  };
}
