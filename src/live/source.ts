import type { Sql } from '../db/sql.ts';
import { invalidLastEventId } from '../streams/ids.ts';
import { readInTurn, type ReadInTurn } from '../streams/read-in-turn.ts';
import { writePosition } from '../streams/position.ts';
import { stillHere, writeMessage, type StreamPiece } from '../streams/server-sent.ts';
import type { OpenSource } from '../streams/source.ts';
import { catchUpValues, startOf } from './catch-up.ts';
import type { Joined } from './live.ts';
import type { LiveFilter } from './group.ts';
import type { LiveHub } from './hub.ts';
import { parseLivePosition, writeLivePosition, type LivePosition } from './live-position.ts';
import { toBytes } from './value.ts';

export type ValueSourceDeps = {
  db: Sql;
  hub: LiveHub;
  exports: ReadInTurn;
};

/** What devices measure, as it is committed. */
export function createValueSource(deps: ValueSourceDeps): OpenSource {
  return async ({ reach, senses, maxHz, from: id }) => {
    const from = id === null ? null : parseLivePosition(id);
    if (id !== null && !from) throw invalidLastEventId();
    const filter = { reach, senses, maxHz };
    const joined = await deps.hub.join(filter);
    return {
      leave: joined.leave,
      pieces: () => writeSource(deps, filter, joined, from),
    };
  };
}

async function* writeSource(
  { db, exports }: ValueSourceDeps,
  filter: LiveFilter,
  { member, position: present }: Joined,
  from: LivePosition | null,
): AsyncGenerator<StreamPiece<string>> {
  let position = from ? writeLivePosition(from) : writePosition(present);
  yield { bytes: Buffer.from(writeOpened(from, present)), position };
  if (from) {
    const sql = readInTurn(exports, filter.reach.accountId, db);
    for await (const values of catchUpValues({ sql, filter, from, present })) {
      // The way there is not by time: who disconnects meanwhile starts over.
      for (const bytes of toBytes(values)) yield { bytes, position };
      if (member.hasEnded) break;
    }
    position = writePosition(present);
    yield { bytes: Buffer.from(stillHere), position };
  }
  for await (const piece of member.read()) {
    ({ position } = piece);
    yield piece;
  }
  if (member.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: member.reason }));
  yield { bytes: Buffer.from(why), position };
}

/** The first message. */
function writeOpened(from: LivePosition | null, present: Joined['position']): string {
  const opened = from
    ? {
        timestamp: present.ts,
        resumed: true,
        start: startOf(from, present),
        late: 'in-history-only',
      }
    : { timestamp: present.ts, resumed: false };
  return writeMessage('opened', JSON.stringify(opened));
}
