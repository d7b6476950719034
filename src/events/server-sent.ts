import { Readable } from 'node:stream';
import type { Page } from './catch-up.ts';
import { writePosition } from './position.ts';
import { toView } from './view.ts';

/** The `text/event-stream` format of the HTML standard, section 9.2. */
export const eventStreamType = 'text/event-stream';

/** A page as text; without events it is a heart-beat that keeps the way open and moves the position on. */
export function writePage({ events, position }: Page): string {
  if (events.length === 0) return `id: ${writePosition(position)}\n: still here\n\n`;
  return events
    .map(({ row, position: after }) => {
      const data = JSON.stringify(toView(row, row.uuid));
      return `id: ${writePosition(after)}\ndata: ${data}\n\n`;
    })
    .join('');
}

/**
 * A stream that is pulled: nothing is read ahead for a reader that does not read, and one that lets a
 * page wait for longer than `patienceMs` is cut off. It resumes where it was.
 */
export function cutOffWhenSlow(source: AsyncIterable<string>, patienceMs: number): Readable {
  const readable: Readable = Readable.from(
    (async function* () {
      for await (const text of source) {
        const timer = setTimeout(() => readable.destroy(new Error('slow reader')), patienceMs);
        try {
          yield text;
        } finally {
          clearTimeout(timer);
        }
      }
    })(),
    { highWaterMark: 1 },
  );
  return readable;
}
