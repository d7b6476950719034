import { findMute, listStandings } from '../alarms/list-standings.ts';
import type { FindAround } from '../devices/evaluation-routes.ts';
import { listClockNotes } from '../ingest/store/sense-clocks.ts';
import { findListening } from '../listening/find-listening.ts';
import { leadersAmong } from './listening.ts';
import type { Shared } from './shared.ts';

/** What an evaluation says beside a device's evidence: its alarms, late measurements, when its connector listened. */
export function createFindAround({ config, clock }: Pick<Shared, 'config' | 'clock'>): FindAround {
  const leaders = leadersAmong(config.connectors);
  const leaderOf = (connectorId: number) => leaders.get(connectorId) ?? null;
  return async (db, { deviceId, pId, newest }) => {
    const [alarms, mutedUntilTs, notes, listening] = await Promise.all([
      listStandings(db, { deviceId, pId }),
      findMute(db, deviceId),
      listClockNotes(db, deviceId, newest),
      findListening(db, deviceId, clock(), leaderOf),
    ]);
    const late = notes.flatMap(({ sId, late: count, clockTs }) =>
      count > 0 && clockTs !== null ? [[sId, { count, newestTs: clockTs }] as const] : [],
    );
    return { alarms, mutedUntilTs, late: new Map(late), listening };
  };
}
