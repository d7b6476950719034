import { findMute, listStandings } from '../alarms/list-standings.ts';
import type { FindAround } from '../devices/device.ts';
import { findClockNotes } from '../ingest/save-states.ts';
import { findListening } from '../listening/find-listening.ts';
import { leadersAmong } from './listening.ts';
import type { Shared } from './shared.ts';

/** What an evaluation says beside a device's evidence: its alarms, late measurements, when its connector listened. */
export function createFindAround({ config, clock }: Pick<Shared, 'config' | 'clock'>): FindAround {
  const leaders = leadersAmong(config.connectors);
  const leaderOf = (connectorId: number) => leaders.get(connectorId) ?? null;
  return async (db, { deviceId, pId, newest, listenedSinceTs: sinceTs }) => {
    const [alarms, mutedUntilTs, { notes, told }, listening] = await Promise.all([
      listStandings(db, { deviceId, pId }),
      findMute(db, deviceId),
      findClockNotes(db, deviceId, newest),
      sinceTs === null
        ? undefined
        : findListening(db, deviceId, { sinceTs, nowTs: clock() }, leaderOf),
    ]);
    const late = notes.flatMap(({ sId, late: count, clockTs }) =>
      count > 0 && clockTs !== null ? [[sId, { count, newestTs: clockTs }] as const] : [],
    );
    const ahead = notes.flatMap(({ sId, aheadTs }) =>
      aheadTs === null ? [] : [[sId, { newestTs: aheadTs }] as const],
    );
    return {
      alarms,
      mutedUntilTs,
      late: new Map(late),
      ahead: new Map(ahead),
      clockAheadTs: told?.aheadTs ?? undefined,
      clockBackTs: told?.backTs ?? undefined,
      listening,
    };
  };
}
