import { Readable } from 'node:stream';
import type { Page } from './catch-up.ts';
import { writePosition, type StreamPosition } from './position.ts';
import type { StreamedRow } from './feed.ts';
import { toAlarmChange, toEventView } from './view.ts';

/** The `text/event-stream` format of the HTML standard, section 9.2. */
export const eventStreamType = 'text/event-stream';

/** A chunk holds about so much, or one event: as much is kept for a reader that has stopped reading. */
const chunkBytes = 65_536;

/** A heart-beat keeps the way open and moves the position on. */
export function writeBeat(position: StreamPosition): Buffer {
  return Buffer.from(`id: ${writePosition(position)}\n: still here\n\n`);
}

/**
 * The events of a page as bytes, which any number of readers can be sent; of one device, or of all
 * (null). A generator, so that others may have a turn between two chunks.
 */
export function* writePage({ events }: Page, deviceId: number | null): Generator<Buffer> {
  let text = '';
  for (const [i, { row }] of events.entries()) {
    if (deviceId !== null && row.deviceId !== deviceId) continue;
    // What comes after it until the device's next is not for this reader: it has seen that, too.
    const after = deviceId === null ? i : nextOf(events, i, deviceId) - 1;
    const position = (events[after] ?? events[i])?.position;
    if (!position) continue;
    text += `id: ${writePosition(position)}\n${writeData(row)}\n\n`;
    if (text.length < chunkBytes) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}

/** Changes of alarms have a name of their own: who listens for messages only is sent events. */
function writeData(row: StreamedRow): string {
  if (row.type === 'alarm') return `event: alarm\ndata: ${JSON.stringify(toAlarmChange(row))}`;
  return `data: ${JSON.stringify(toEventView(row, row.uuid))}`;
}

function nextOf(events: Page['events'], i: number, deviceId: number): number {
  const next = events.findIndex(({ row }, place) => place > i && row.deviceId === deviceId);
  return next < 0 ? events.length : next;
}

/**
 * A stream that is pulled: nothing is read ahead for a reader that does not read, and one that lets a
 * chunk wait for longer than `patienceMs` is cut off. It resumes where it was.
 */
export function cutOffWhenSlow(source: AsyncIterable<Buffer>, patienceMs: number): Readable {
  const readable: Readable = Readable.from(
    (async function* () {
      for await (const chunk of source) {
        const timer = setTimeout(() => readable.destroy(new Error('slow reader')), patienceMs);
        try {
          yield chunk;
        } finally {
          clearTimeout(timer);
        }
      }
    })(),
    { highWaterMark: 1 },
  );
  return readable;
}
