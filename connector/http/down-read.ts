import type { Downlink } from '../../src/contract/uplink.ts';
import type { ByteRoom, Reservation } from '../../src/lib/byte-room.ts';
import { enterToLoad } from '../device/downlink-room.ts';
import { isUnavailableError } from '../failure.ts';
import type { Log, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { pickNew, type Given } from './down-after.ts';
import type { Poll } from './down-poll.ts';
import { limitTaking } from './limit-taking.ts';
import { comeLater, HttpProblem } from './problem.ts';

export type PollReaderDeps = {
  ports: Pick<ConnectorPorts, 'subscribed'>;
  /** Of all devices: what is being read for them, and written to them. */
  room: ByteRoom;
  tuning: Pick<Tuning, 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'>;
  log: Log;
  answer: (poll: Poll, messages: readonly Downlink[], given: Given) => void;
};

const retryMs = 1_000;

/** Reads what is due to a device that waits, and answers it where there is something. */
export function createPollReader({ ports, room, tuning, log, answer }: PollReaderDeps) {
  /** What the device has not been given; null where that is nothing. */
  async function readOnce(poll: Poll): Promise<ReturnType<typeof pickNew> | null> {
    const due = await ports.subscribed(poll.device, [...poll.topics]);
    const picked = pickNew([...due, ...(poll.errors ?? [])], poll.given, poll.isProfileAsked);
    return picked.messages.length > 0 ? picked : null;
  }

  async function readIn(poll: Poll, place: Reservation): Promise<void> {
    const leave = (): void => place.leave();
    poll.response.once('close', leave);
    do {
      poll.isWoken = false;
      const picked = await readOnce(poll);
      if (poll.isOver) break;
      if (picked) {
        answer(poll, picked.messages, picked.given);
        return limitTaking(poll.response, room, tuning);
      }
    } while (poll.isWoken);
    poll.response.off('close', leave);
    leave();
    if (poll.isLate) answer(poll, [], poll.given);
  }

  function retry(poll: Poll, error: unknown): void {
    if (poll.isLate) return answer(poll, [], poll.given);
    if (!isUnavailableError(error) && !(error instanceof HttpProblem))
      log.warn(
        { event: 'downlink.unread', err: error, device: poll.device.uuid },
        'What is due for a device could not be read.',
      );
    setTimeout(() => void read(poll), retryMs).unref();
  }

  /** Once where it is read already. `isFirst`: rejects with what it cannot be read for; later it is tried again. */
  async function read(poll: Poll, isFirst = false): Promise<void> {
    poll.isWoken = true;
    if (poll.isReading || poll.isOver) return;
    poll.isReading = true;
    let place: Reservation | null = null;
    try {
      place = await enterToLoad(room, poll.device);
      if (place && !poll.isOver) await readIn(poll, place);
      else place?.leave();
      if (!place) throw comeLater('Too much is being read for devices: try again later.');
    } catch (error) {
      place?.leave();
      if (isFirst) throw error;
      if (!poll.isOver) retry(poll, error);
    } finally {
      poll.isReading = false;
    }
  }

  return { read };
}
