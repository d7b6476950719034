import { invalidLastEventId } from '../streams/ids.ts';
import { parsePosition, writePosition } from '../streams/position.ts';
import type { StreamPiece } from '../streams/server-sent.ts';
import type { AskedSource, OpenSource } from '../streams/source.ts';
import type { Audience } from './audience.ts';
import { followEvents, type EventSourceDeps, type Following } from './stream.ts';

/** Events and changes of alarms, as they are committed, for a stream that carries several kinds. */
export function createEventSource(deps: EventSourceDeps): OpenSource {
  return async (asked) => {
    const from = asked.from === null ? null : parsePosition(asked.from);
    if (asked.from !== null && !from) throw invalidLastEventId();
    const audience = audienceOf(asked);
    const first = await deps.hub.join(audience);
    return {
      leave: first.leave,
      pieces: (until) => writeSource(deps, { audience, from, first, until }),
    };
  };
}

function audienceOf({ kinds, reach }: AskedSource): Audience {
  const hasEvents = kinds.has('events');
  const hasAlarms = kinds.has('alarms');
  return {
    accountId: reach.accountId,
    deviceId: null,
    key: JSON.stringify([reach.key, hasEvents, hasAlarms]),
    takes: (row) => (row.type === 'alarm' ? hasAlarms : hasEvents) && reach.has(row.deviceId),
    hasIds: false,
  };
}

async function* writeSource(
  deps: EventSourceDeps,
  following: Following,
): AsyncGenerator<StreamPiece<string>> {
  for await (const { bytes, position } of followEvents(deps, following))
    yield { bytes, position: writePosition(position) };
}
