import type { Duplex } from 'node:stream';
import { writePuback } from './mqtt-js.ts';

/** A message of the broker on its way to the database. */
export type HeldPacket = {
  bytes: number;
  sinceMs: number;
  isStored: boolean;
  /** 0: the broker waits for no acknowledgement. */
  qos: number;
  messageId: number;
  /** The connection it came over: nowhere else may it be acknowledged. */
  stream: Duplex;
};

export type UnackedLimits = { maxMessages: number; maxBytes: number };

/**
 * Messages that wait for their commit. Acknowledgements leave in the order in which the messages
 * came [MQTT-4.6.0-2], whatever the order of the commits.
 */
export function createUnacknowledged(
  room: UnackedLimits,
  onAcknowledged: (held: HeldPacket) => void,
) {
  let queue: HeldPacket[] = [];
  let messages = 0;
  let bytes = 0;
  let onRoom: (() => void) | null = null;
  let isPaused = false;

  const hasRoom = () => !isPaused && messages < room.maxMessages && bytes < room.maxBytes;

  function release(held: HeldPacket): void {
    messages -= 1;
    bytes -= held.bytes;
    goOn();
  }

  function goOn(): void {
    if (!onRoom || !hasRoom()) return;
    const resume = onRoom;
    onRoom = null;
    resume();
  }

  return {
    hold(held: HeldPacket): void {
      messages += 1;
      bytes += held.bytes;
      if (held.qos > 0) queue.push(held);
    },

    /** Calls back once there is room for another message; at once where there is. */
    whenRoom(resume: () => void): void {
      if (hasRoom()) resume();
      else onRoom = resume;
    },

    /** While paused there is no room. */
    pause(isToPause: boolean): void {
      isPaused = isToPause;
      goOn();
    },

    /** It is committed, or there is nothing to commit. */
    settle(held: HeldPacket): void {
      held.isStored = true;
      release(held);
      while (queue[0]?.isStored) {
        const next = queue.shift() as HeldPacket;
        writePuback(next.stream, next.messageId);
        onAcknowledged(next);
      }
    },

    /** This delivery is not going to be stored. */
    giveUp: release,

    /** The connection is gone: what came over it is delivered again over the next one. */
    forgetOrder: () => void (queue = []),

    count: () => messages,
  };
}
