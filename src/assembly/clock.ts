import { Gauge, type Registry } from 'prom-client';
import { bringBack } from '../clock/after-leap.ts';
import {
  startServiceClock,
  type BelievedTime,
  type ServiceClockOptions,
} from '../clock/service-clock.ts';
import type { Config } from '../config/config.ts';
import type { Sql } from '../db/sql.ts';
import { monotonicClock, type Clocks } from '../lib/clock.ts';
import type { ServiceLog } from '../log/logger.ts';
import type { ReleaseSteps } from './shutdown.ts';

/** What time it is, and what may be deleted by it. */
export type ClockParts = Clocks & {
  believed: BelievedTime;
  /** `forget` is called when the clock was set: of what was given out by the earlier time. */
  onClockMoved(forget: () => void): void;
};

type ClockDeps = {
  config: Pick<Config, 'ingest' | 'alarms'>;
  db: Sql;
  log: ServiceLog;
  releases: ReleaseSteps;
  registry: Registry;
};

const doubtWords = {
  start: 'It is before the time that was last believed, or more than two days beyond it.',
  leap: 'It was set, or another server took over, whose clock differs.',
  shared: 'Another process found it so.',
};

const beliefWords = {
  back: 'It is where it should be again.',
  steady: 'It has gone on for an hour without being set.',
  shared: 'Another process, or the operator, says that it is right.',
};

/** All processes go by the database's clock. Whether it may be believed is logged, and a metric. */
export async function startClock({
  config,
  db,
  log,
  releases,
  registry,
}: ClockDeps): Promise<ClockParts> {
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
        `The database's clock is in doubt: nothing is deleted by it. ${doubtWords[change.reason]} If it is right, say so: npm run clock -- believe.`,
      );
    else
      clockLog.info(
        { event: 'clock.believed', reason: change.reason },
        `The database's clock is believed again. ${beliefWords[change.reason]}`,
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
          'What the clock wrote while it was ahead was brought back to the present: nothing waits for it.',
        );
    },
    onError: (err) =>
      clockLog.warn(
        { event: 'clock.unread', err },
        'The time of the database could not be read; the last known difference is used.',
      ),
    onMoved: (byMs) => {
      for (const forget of listeners) forget();
      clockLog.warn(
        { event: 'clock.moved', byMs },
        "The database's clock was set: the service's time jumps.",
      );
    },
  });
  releases.add('clock', () => clock.close());
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
    help: "1 while the service's clock is in doubt and nothing is deleted by it, else 0.",
    registers: [registry],
    collect() {
      this.set(believedTs() === null ? 1 : 0);
    },
  });
  new Gauge({
    name: 'clock_ahead_seconds',
    help: 'How far the clock is ahead of where it should be, while it is in doubt and ten minutes after; else 0.',
    registers: [registry],
    collect() {
      this.set(-doubtSpanMs() / 1_000);
    },
  });
}
