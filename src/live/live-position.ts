import { parsePosition, writePosition, type StreamPosition } from '../streams/position.ts';

/** Time in ms up to which a sense was sent. */
export type SentSense = { deviceId: number; sId: string; ts: number };

/**
 * How far a stream of values has come. Of each sense everything was sent up to the newest value that
 * `position` sees; of those in `sent` also what came after it.
 *
 * A time for each sense would not do as an id: 4,000 of them are 40 KB with every message, and a request's
 * headers hold 16 KB. One time for all would not do either: it leaves out what a slow device sends of before
 * it, or repeats what quick ones have sent since. But the database knows which values a snapshot of
 * its transactions sees, whichever process sent them; so the id is that snapshot, taken a few seconds
 * ago (a commit must have reached this process by then), and the newest few senses sent since. With more
 * of them than that, the values of those seconds come again.
 */
export type LivePosition = { position: StreamPosition; sent: SentSense[] };

/** Of how many senses an id says that they were sent more than its snapshot sees: it stays below 1 KB. */
export const maxSent = 16;
/** A longer name is left out: its values of the last seconds come again. */
const maxNameLength = 24;

/** As a part of the id of a server-sent event. */
export function writeLivePosition({ position, sent }: LivePosition): string {
  const named = sent
    .map(({ deviceId, sId, ts }) => [
      deviceId.toString(36),
      encodeURIComponent(sId),
      ts.toString(36),
    ])
    .filter(([, name = '']) => name.length <= maxNameLength)
    .map((parts) => parts.join(':'));
  const text = writePosition(position);
  return named.length === 0 ? text : `${text}/${named.join(',')}`;
}

/** Null for what `writeLivePosition` did not write. */
export function parseLivePosition(text: string): LivePosition | null {
  const [before = '', named = ''] = text.split('/', 2);
  const position = parsePosition(before);
  if (!position) return null;
  const sent = named === '' ? [] : named.split(',').map(parseSent);
  if (sent.length > maxSent || !sent.every((one) => one !== null)) return null;
  return { position, sent };
}

function parseSent(text: string): SentSense | null {
  const [, device, name, time] =
    /^([0-9a-z]{1,10}):([^:,/]{0,72}):([0-9a-z]{1,10})$/.exec(text) ?? [];
  if (device === undefined || name === undefined || time === undefined) return null;
  try {
    const sId = decodeURIComponent(name);
    return { deviceId: Number.parseInt(device, 36), sId, ts: Number.parseInt(time, 36) };
  } catch {
    return null;
  }
}
