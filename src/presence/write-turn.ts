import { presenceOf } from '../contract/presence.ts';
import type { Reach } from '../streams/reach.ts';
import { writeMessage } from '../streams/server-sent.ts';
import type { AskAgain, PresenceTurn } from './changes.ts';

/**
 * Where a reader is, whatever it has read: who was there a moment ago is written nowhere, so that one that comes
 * back is told to ask again.
 */
export const position = '1';

export const writeAskAgain = (reason: AskAgain): Buffer =>
  Buffer.from(writeMessage('devices', JSON.stringify({ reason })));

/** The messages of a turn about the devices of `reach`, as of `StreamPiece`; empty where there is none. */
export type WriteTurn = (turn: PresenceTurn, reach: Pick<Reach, 'has'>) => Buffer;

/** `isIntermittent`: of a connector, as of `Presence`. */
export function createWriteTurn(isIntermittent: (connectorId: number) => boolean): WriteTurn {
  return (turn, reach) => {
    if ('reason' in turn) return writeAskAgain(turn.reason);
    const messages = turn.devices
      .filter(({ deviceId }) => reach.has(deviceId))
      .map(({ uuid, connected, connectorId, seenTs }) => {
        const presence = presenceOf(connected, isIntermittent(connectorId));
        const told = { deviceAuthUuid: uuid, presence, lastSeenTs: seenTs };
        return writeMessage('device', JSON.stringify(told));
      });
    return Buffer.from(messages.join('\n'));
  };
}
