import { forgetEntries, insertEntry } from '../audit/audit.ts';
import { startRefusalLog, type RefusalLog } from '../audit/refusals.ts';
import type { Chore } from '../history/upkeep.ts';
import type { EndedSession } from '../sessions/sessions.ts';
import type { Shared } from './shared.ts';

const dayMs = 86_400_000;

/** Where refused logins of this process are written down. */
export function startRefusals({ db, clock, log, releases }: Shared): RefusalLog {
  const onError = (err: unknown) =>
    log
      .child({ component: 'audit' })
      .warn(
        { event: 'audit.unwritten', err },
        'Refused logins could not be written to the audit trail; it is tried again.',
      );
  const refusals = startRefusalLog({ db, clock, onError });
  releases.add('refused logins', () => refusals.close());
  return refusals;
}

/** A rule ended a session: a second use of a refresh token, or one login too many. */
export function writeEndedSessions({
  db,
  clock,
  log,
}: Pick<Shared, 'db' | 'clock' | 'log'>): (ended: EndedSession) => void {
  return ({ accountId, sessionId: session, reason, address }) => {
    const actor = { by: 'service', sessionId: null, address } as const;
    const details = { session, reason };
    const entry = { kind: 'session-ended', actor, ts: clock(), details } as const;
    insertEntry(db, accountId, entry).catch((err: unknown) =>
      log
        .child({ component: 'audit' })
        .warn(
          { event: 'audit.unwritten', err },
          'The end of a session could not be written to the audit trail.',
        ),
    );
  };
}

/** A chore of the upkeep. */
export function forgetOldEntries({ config, db }: Shared): Chore {
  return async (nowTs, { signal }) => {
    await forgetEntries(db, nowTs - config.audit.days * dayMs, signal);
  };
}
