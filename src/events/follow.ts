import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { catchUp, type Page } from './catch-up.ts';
import { readPosition, type StreamScope } from './feed.ts';
import type { Position } from './position.ts';
import { setAlarm } from './wake.ts';

export type FollowOptions = {
  db: Sql;
  bus: Bus;
  scope: StreamScope;
  from: Position;
  /** At least so often something is yielded, and the database asked unasked. */
  heartbeatMs: number;
  signal: AbortSignal;
};

/** However many commits there are, the database is asked ten times a second at most. */
const pauseMs = 100;

/** Yields what is committed from a position on; without events it is a heart-beat. Ends when the signal aborts. */
export async function* follow(options: FollowOptions): AsyncGenerator<Page> {
  const { db, bus, scope, heartbeatMs, signal } = options;
  const alarm = setAlarm(bus, scope, signal);
  let position = options.from;
  let beatMs = performance.now();
  try {
    while (!signal.aborted) {
      const to = await readPosition(db);
      for await (const page of catchUp(db, scope, position, to)) {
        if (page.events.length === 0 && performance.now() - beatMs < heartbeatMs) continue;
        beatMs = performance.now();
        yield page;
        if (signal.aborted) return;
      }
      position = to;
      await delay(pauseMs);
      await alarm.wait(Math.max(0, heartbeatMs - (performance.now() - beatMs)));
    }
  } finally {
    alarm.stop();
  }
}
