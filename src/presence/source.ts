import type { Bus } from '../bus/bus.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import { invalidLastEventId } from '../streams/ids.ts';
import type { Member } from '../streams/subscriber.ts';
import type { WaitingRoom } from '../streams/waiting-room.ts';
import { stillHere, writeMessage, type StreamPiece } from '../streams/server-sent.ts';
import type { OpenSource } from '../streams/source.ts';
import { PresenceBoard } from './presence.ts';
import { createWriteTurn, position, writeAskAgain } from './write-turn.ts';

export type PresenceSourceDeps = {
  bus: Bus;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** Of a connector, as of `Presence`. */
  isIntermittent: (connectorId: number) => boolean;
};

/** Who connects and leaves, as it is written, and that the list of devices changed. Hears nothing while there is no stream. */
export function createPresenceSource(deps: PresenceSourceDeps): OpenSource {
  const { bus } = deps;
  const boards = new Map<number, PresenceBoard>();
  const write = createWriteTurn(deps.isIntermittent);
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('presence', ({ accounts }) => {
        for (const { accountId, devices } of accounts) boards.get(accountId)?.hear(devices);
      }),
      bus.subscribe('fleet', ({ accountId }) => boards.get(accountId)?.change()),
      // Which devices a filter lets through changed, too.
      bus.subscribe('labels', ({ accountId }) => boards.get(accountId)?.change()),
      bus.subscribe('resync', () => {
        for (const board of boards.values()) board.miss();
      }),
    ];
  };
  const open = (accountId: number): PresenceBoard => {
    if (boards.size === 0) listen();
    const onEnd = () => {
      boards.delete(accountId);
      if (boards.size === 0) for (const end of ends) end();
    };
    const board = new PresenceBoard({ ...deps, write, onEnd });
    boards.set(accountId, board);
    return board;
  };

  return async ({ reach, from }) => {
    if (from !== null && from !== position) throw invalidLastEventId();
    const board = boards.get(reach.accountId) ?? open(reach.accountId);
    const { member, leave } = board.join(reach);
    return { leave, pieces: () => read(member, from !== null) };
  };
}

async function* read(
  member: Member<string>,
  isResumed: boolean,
): AsyncGenerator<StreamPiece<string>> {
  const first = isResumed ? writeAskAgain('missed') : Buffer.from(stillHere);
  yield { bytes: first, position };
  yield* member.read();
  if (member.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: member.reason }));
  yield { bytes: Buffer.from(why), position };
}
