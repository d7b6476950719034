import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import type { WaitingRoom } from '../streams/waiting-room.ts';
import { createSlices } from '../streams/slices.ts';
import { createAnnouncer } from './announce.ts';
import { Board, type Joined } from './live.ts';
import { underWayMs, type LiveFilter } from './group.ts';
import { createPositions } from './positions.ts';

export type LiveHubOptions = {
  db: Sql;
  bus: Bus;
  /** The name of this process; no other has it. */
  process: string;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** What is committed could not be read: ids stay behind, and a reader that resumes is sent more again. */
  onError: (error: unknown) => void;
};

/** All streams of values of this process, by account. */
export type LiveHub = {
  /** From then on the member is given what is committed, in whatever process. */
  join(filter: LiveFilter): Promise<Joined>;
};

/** The longest period of a stream, by the least `maxHz`. */
const longestPeriodMs = 10_000;

/** Hears and asks nothing while there is no stream. */
export function createLiveHub(options: LiveHubOptions): LiveHub {
  const { db, bus, monotonicClock, onError } = options;
  const boards = new Map<number, Board>();
  const announcer = createAnnouncer(options);
  const positions = createPositions(db, monotonicClock, longestPeriodMs + 2 * underWayMs);
  const takeTurn = createSlices();
  const waiting = { values: 0 };
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('measurements', ({ accountId, devices }) =>
        boards.get(accountId)?.hear(devices),
      ),
      bus.subscribe('resync', () => {
        for (const board of boards.values()) board.drop('interrupted');
      }),
      positions.follow(onError),
    ];
  };
  const open = (accountId: number): Board => {
    if (boards.size === 0) listen();
    const onEnd = () => {
      boards.delete(accountId);
      announcer.delete(accountId);
      if (boards.size === 0) for (const end of ends) end();
    };
    const board = new Board({ ...options, positions, takeTurn, waiting, onEnd });
    boards.set(accountId, board);
    announcer.add(accountId);
    return board;
  };

  return {
    join(filter) {
      const { accountId } = filter.reach;
      const board = boards.get(accountId) ?? open(accountId);
      return board.join(filter, positions.read());
    },
  };
}
