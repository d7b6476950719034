import { DomainError } from '../errors.ts';
import type { Route } from '../http/route.ts';
import type { ImportPorts } from '../imports/ports.ts';
import { importRoutes } from '../imports/routes.ts';
import { checkSense, checkTime } from '../ingest/rules/validate.ts';
import { holdDevices, noteImported } from '../ingest/imported.ts';
import { createKnownSeries } from '../measurements/series.ts';
import { findNewest } from '../measurements/newest.ts';
import { addMeasurements, storeCounted } from '../measurements/store.ts';
import { addImported, findActivity } from '../quotas/activity-queries.ts';
import type { Shared } from './shared.ts';

const dayMs = 86_400_000;
/** As the estimate of what is stored, which is made every hour. */
const fullForSeconds = 3_600;

/** Imports, with the rules that hold for what devices send. */
export function listImportRoutes(
  shared: Shared,
  { authenticate, othersWait }: Pick<ImportPorts, 'authenticate' | 'othersWait'>,
): Route[] {
  const { config, db, clock, monotonicClock, limitsOf, requests } = shared;
  const known = createKnownSeries();
  // What answers now may be another server, which took over without all that was known of the one before.
  db.pool.on('connect', known.clear);
  const { maxAheadMs } = config.ingest;
  const limits = { maxAheadMs, doubtSpanMs: shared.believed.doubtSpanMs };
  return importRoutes({
    db,
    clock,
    nowMs: monotonicClock,
    limitOf: (accountId) => limitsOf(accountId).imports,
    authenticate,
    othersWait,
    check: ({ sId, ts, val, long }, senses, arrivedTs) =>
      checkSense(senses, sId, long === undefined ? val : null, '') ??
      checkTime(ts, { arrivedTs, limits }, shared.kept.days().measurementsDays * dayMs, '/ts'),
    add: (tx, rows) => addMeasurements(tx, rows, known),
    store: (tx, rows) => storeCounted(tx, rows, known),
    hold: holdDevices,
    note: (tx, rows, arrivedTs) => noteImported(tx, rows, arrivedTs, findNewest),
    count(tx, accountId, rows, added) {
      requests.note(accountId, monotonicClock());
      return addImported(tx, accountId, countByDay(rows, added / rows.length));
    },
    async checkRoom(accountId) {
      const { storedBytes: used } = await findActivity(db, accountId, config.retention);
      const limit = limitsOf(accountId).storedBytes;
      if (used < limit) return;
      const message = `The quota storedBytes is used up: ${used} of ${limit}.`;
      throw new DomainError('unavailable', message, {
        retryAfterSeconds: fullForSeconds,
        exceeded: { quota: 'storedBytes', limit, used },
      });
    },
  });
}

/** How many rows are of which day since 1970 (UTC), where this part of them counts. */
function countByDay(rows: readonly { ts: number }[], part: number): Map<number, number> {
  const days = Map.groupBy(rows, ({ ts }) => Math.floor(ts / dayMs));
  return new Map([...days].map(([day, { length }]) => [day, Math.ceil(length * part)]));
}
