import type { DatabaseKind } from '../support/database.ts';
import { testDatabase } from '../support/database.ts';
import * as app from './app.ts';
import { readEvents } from './sse.ts';

export const t0 = Date.UTC(2026, 5, 1);
export const timestamps = (events: Record<string, unknown>[]) => events.map((e) => e['timestamp']);

export type Streams = Awaited<ReturnType<typeof startStreams>>;

/** A process that serves streams, and another one on the same database. */
export async function startStreams(kind: DatabaseKind) {
  const database = await testDatabase(kind);
  const { db } = database;
  const history = await app.startHistory(db, { heartbeatMs: 60_000 });
  const deaf = await app.startHistory(db, { heartbeatMs: 200 });
  return {
    database,
    db,
    history,
    /** It hears no announcements, and looks only at its heartbeat. */
    deaf,
    open: (device: app.Device, lastEventId?: string, from = history) =>
      readEvents(`${from.url}/v2/events/${device.uuid}/stream`, device.accountId, lastEventId),
    commit: (...events: Parameters<typeof app.newEvent>[]) =>
      app.commitEvents(
        db,
        history.bus,
        events.map((args) => app.newEvent(...args)),
      ),
    async close() {
      await history.close();
      await deaf.close();
      await database.drop();
    },
  };
}
