import { DomainError } from '../errors.ts';

/** The parts of a stream that have positions of their own: events with alarms, measurements, and who is there. */
const sourceNames = ['events', 'measurements', 'devices'] as const;
export type SourceName = (typeof sourceNames)[number];

const letters: Record<SourceName, string> = {
  events: 'e',
  measurements: 'm',
  devices: 'd',
};

/** The positions of a stream's parts, as the id of a server-sent event. */
export function writeIds(positions: ReadonlyMap<SourceName, string>): string {
  const parts = sourceNames.flatMap((name) => {
    const position = positions.get(name);
    return position === undefined ? [] : [`${letters[name]}=${position}`];
  });
  return parts.join(';');
}

/** Where a reader was; of a part that it did not have, nothing. Throws `invalid-input`. */
export function parseIds(lastEventId: string): Map<SourceName, string> {
  const positions = readIds(lastEventId);
  if (!positions) throw invalidLastEventId();
  return positions;
}

/** The same, null for what is no id. */
export function readIds(lastEventId: string): Map<SourceName, string> | null {
  const positions = new Map<SourceName, string>();
  if (lastEventId === '') return positions;
  for (const part of lastEventId.split(';')) {
    const name = sourceNames.find((one) => part.startsWith(`${letters[one]}=`));
    if (!name || positions.has(name)) return null;
    positions.set(name, part.slice(2));
  }
  return positions;
}

export function invalidLastEventId(): DomainError {
  const problems = [{ path: 'Last-Event-ID', message: 'is not an id of this stream' }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}
