import { writePosition, type StreamPosition } from '../streams/position.ts';
import { chunkBytes, stillHere, writeMessage, type StreamPiece } from '../streams/server-sent.ts';
import type { Audience } from './audience.ts';
import type { Page } from './catch-up.ts';
import type { StreamedRow } from './feed.ts';
import { toAlarmChange, toEventView } from './view.ts';

export type EventPiece = StreamPiece<StreamPosition>;

/** A heart-beat keeps the way open and moves the position on. */
export function writeBeat(position: StreamPosition, hasIds: boolean): EventPiece {
  const text = hasIds ? `id: ${writePosition(position)}\n${stillHere}\n` : stillHere;
  return { bytes: Buffer.from(text), position };
}

/**
 * The events of a page that an audience takes, as bytes which any number of readers can be sent. A
 * generator, so that others may have a turn between two pieces.
 */
export function* writePage({ events }: Page, audience: Audience): Generator<EventPiece> {
  const { takes, hasIds } = audience;
  let text = '';
  let last: StreamPosition | undefined;
  for (const [i, { row }] of events.entries()) {
    if (!takes(row)) continue;
    // What comes after it until the next that is taken is not for this reader: it has seen that, too.
    const position = events[nextOf(events, i, takes) - 1]?.position;
    if (!position) continue;
    if (hasIds) text += `id: ${writePosition(position)}\n${writeData(row)}\n`;
    else text += (text === '' ? '' : '\n') + writeNamed(row);
    last = position;
    if (text.length < chunkBytes) continue;
    yield { bytes: Buffer.from(text), position };
    text = '';
  }
  if (text !== '' && last) yield { bytes: Buffer.from(text), position: last };
}

/** Changes of alarms have a name of their own: who listens for messages only is sent events. */
function writeData(row: StreamedRow): string {
  return row.type === 'alarm'
    ? writeNamed(row)
    : `data: ${JSON.stringify(toEventView(row, row.uuid))}\n`;
}

function writeNamed(row: StreamedRow): string {
  return row.type === 'alarm'
    ? writeMessage('alarm', JSON.stringify(toAlarmChange(row)))
    : writeMessage('event', JSON.stringify(toEventView(row, row.uuid)));
}

function nextOf(events: Page['events'], i: number, takes: Audience['takes']): number {
  const next = events.findIndex(({ row }, place) => place > i && takes(row));
  return next < 0 ? events.length : next;
}
