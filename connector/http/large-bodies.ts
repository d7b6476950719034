import type { IncomingMessage } from 'node:http';
import { waitAtMost } from '../../src/lib/wait.ts';
import { createLargeRoom, type LargePlace } from '../device/large-room.ts';
import { mostMeasurementBytes, type ConnectorLimits, type Tuning } from '../options.ts';
import type { BegunBodies } from './begun-bodies.ts';
import { checkLength, readBody } from './body.ts';
import { comeLater, HttpProblem } from './problem.ts';

export type BodiesOptions = {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largePatienceMs'>;
  /** Those that are no larger than others may be. */
  bodies: BegunBodies;
};

/** What is read of one device. */
export type BodyOf = { name: string; accountId: number };

/** Its room is reserved before it is read: it makes way for nobody. */
const reserved: BegunBodies = { begin: () => ({ add() {}, end() {} }), bytes: () => 0 };

/** Reads bodies: those of measurements may be larger, and each of these is charged to its account before it is read. */
export function createBodies({ limits, tuning, bodies }: BodiesOptions) {
  const room = createLargeRoom(tuning.maxLargeBytes);
  const mostOf = (name: string) =>
    name === 'measurements' ? mostMeasurementBytes(limits) : limits.maxPacketBytes;

  async function enter(accountId: number, bytes: number): Promise<LargePlace> {
    const { promise: entered, resolve } = Promise.withResolvers<void>();
    const place = room.enter(accountId, bytes, resolve);
    if (!place.isIn) await waitAtMost(entered, tuning.largePatienceMs);
    if (place.isIn) return place;
    place.leave();
    throw comeLater('Other large bodies of the account are still coming: try again later.');
  }

  return {
    /** Throws 413 where the body is announced to be larger than it may be. */
    check: (request: IncomingMessage, name: string): void => checkLength(request, mostOf(name)),

    /** Rejects as `readBody`, and with 503 where a large one has no room in time. */
    async read(request: IncomingMessage, { name, accountId }: BodyOf): Promise<Buffer> {
      const most = mostOf(name);
      // Of one that comes in chunks nobody knows the length.
      const bytes = Number(request.headers['content-length'] ?? most);
      if (bytes <= limits.maxPacketBytes) return readBody(request, most, bodies);
      const place = await enter(accountId, bytes);
      try {
        if (request.destroyed) throw new HttpProblem(400, 'invalid-input', 'The body broke off.');
        return await readBody(request, most, reserved);
      } finally {
        place.leave();
      }
    },

    bytes: () => bodies.bytes() + room.bytes(),
  };
}
