import { markRedelivered } from './packets.ts';

/**
 * A sent message, in `bytes` as it was sent. Places are reused, because a new object for each message would cost more.
 */
export type Place = {
  /** 0: free. */
  packetId: number;
  seq: number;
  sentAtMs: number;
  bytes: Buffer;
  from: number;
  to: number;
};

const nothing = Buffer.alloc(0);

export type InFlight = ReturnType<typeof createInFlight>;

/** The QoS 1 messages of a device that wait for their acknowledgement, and its packet identifiers. */
export function createInFlight(size: number) {
  // Indexed by packet identifier modulo their number: a Map would grow and shrink with every message.
  const places = Array.from({ length: size }, (): Place => ({
    packetId: 0,
    seq: 0,
    sentAtMs: 0,
    bytes: nothing,
    from: 0,
    to: 0,
  }));
  let pending = 0;
  let packetId = 0;

  function placeOf(id: number): Place {
    return places[id % size] as Place;
  }

  /** A packet identifier that no message under way has. */
  function nextPacketId(): number {
    do packetId = (packetId % 65_535) + 1;
    while (placeOf(packetId).packetId === packetId);
    return packetId;
  }

  return {
    nextPacketId,
    pending: () => pending,
    isFull: () => pending === size,

    /** A free place, with its packet identifier. There must be one. */
    take(): Place {
      let id = nextPacketId();
      while (placeOf(id).packetId !== 0) id = nextPacketId();
      const place = placeOf(id);
      place.packetId = id;
      pending += 1;
      return place;
    },

    /** Frees the place of an acknowledged message; null if it was free already. */
    settle(id: number): Place | null {
      const place = placeOf(id);
      if (id === 0 || place.packetId !== id) return null;
      place.packetId = 0;
      pending -= 1;
      return place;
    },

    /** The packets to send again on a new connection, in order and marked. */
    unsettled(): Buffer[] {
      return places
        .filter((place) => place.packetId !== 0)
        .sort((a, b) => a.seq - b.seq)
        .map(({ bytes, from, to }) => markRedelivered(bytes.subarray(from, to)));
    },
  };
}
