import { findMute, listStandings } from '../alarms/list-standings.ts';
import type { FindAround } from '../devices/evaluation-routes.ts';
import { listLate } from '../ingest/store/list-late.ts';
import { findListening } from '../listening/find-listening.ts';
import { leadersAmong } from './listening.ts';
import type { Shared } from './shared.ts';

/** What an evaluation says beside a device's evidence: its alarms, late measurements, when its connector listened. */
export function createFindAround({ config, clock }: Pick<Shared, 'config' | 'clock'>): FindAround {
  const leaders = leadersAmong(config.connectors);
  const leaderOf = (connectorId: number) => leaders.get(connectorId) ?? null;
  return async (db, { deviceId, pId }) => {
    const [alarms, mutedUntilTs, late, listening] = await Promise.all([
      listStandings(db, { deviceId, pId }),
      findMute(db, deviceId),
      listLate(db, deviceId),
      findListening(db, deviceId, clock(), leaderOf),
    ]);
    return { alarms, mutedUntilTs, late, listening };
  };
}
