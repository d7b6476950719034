import { coalesce } from '../lib/coalesce.ts';
import type { Sql } from '../db/sql.ts';
import { type Access, listAccess } from './tokens.ts';

// At most 50 queries a second, however many devices connect.
const pauseMs = 20;

export type AccessFinder = {
  /** The version of the device's token now, from the database; null when there is no such device. */
  find(uuid: string): Promise<Access | null>;
  /** What was asked before this for the device (without one: for any) is asked again. */
  invalidate(uuid?: string): void;
};

/** Looks devices' credentials up; ten thousand at once are a few queries. */
export function createAccessFinder(db: Sql, onFound: (access: Access) => void): AccessFinder {
  const lookUps = coalesce({ load: (uuids: string[]) => listAccess(db, uuids), pauseMs });
  const underWay = new Map<string, Set<{ stale: boolean }>>();

  async function find(uuid: string): Promise<Access | null> {
    const mark = { stale: false };
    const marks = underWay.get(uuid) ?? new Set();
    underWay.set(uuid, marks.add(mark));
    try {
      for (;;) {
        mark.stale = false;
        const access = await lookUps.find(uuid);
        // The answer may be older than the change: it must neither be used nor remembered.
        if (mark.stale) continue;
        if (access) onFound(access);
        return access;
      }
    } finally {
      marks.delete(mark);
      if (marks.size === 0) underWay.delete(uuid);
    }
  }

  function invalidate(uuid?: string): void {
    const stale = uuid === undefined ? [...underWay.values()] : [underWay.get(uuid) ?? []];
    for (const marks of stale) for (const mark of marks) mark.stale = true;
  }

  return { find, invalidate };
}
