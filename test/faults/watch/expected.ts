import type { Evidence, KnownGap, Message, Watched } from './evidence.ts';
import { isHigh, rules } from './roles.ts';

/** A firing between these times, by its own; `isRequired`: it has to be there, else it may be. */
export type Expected = { fromTs: number; toTs: number; isRequired: boolean };

/**
 * How exactly this process and the service have the same time, and when a message arrived is known: at its start a busy
 * process may be wrong by half of what the answer of its database took.
 */
const slackMs = 1_000;
const soonMs = 3_000;
const signMs = 6_000;

/** What is known beside the device. */
type Known = Pick<Evidence, 'nowTs' | 'gaps' | 'connectors'>;

/** What is to fire of what a device sent, in its order. Nothing else may. */
export function expectedOf(device: Watched, known: Known): Expected[] {
  const { nowTs, gaps } = known;
  const { role, messages } = device;
  const { thresholdMs } = rules[role];
  if (role === 'swinging') return highs(messages, 0, ({ ackedTs }) => ackedTs !== null);
  if (role === 'lasting')
    // A later message forces what no tick has brought by then.
    return highs(messages, thresholdMs, (_, next) => (next?.ackedTs ?? null) !== null);
  const unheard = surelyUnheard(known);
  const first: Message = { ts: device.installedTs, ackedTs: messages[0]?.ackedTs ?? nowTs };
  return [first, ...messages].flatMap((message, at, all) =>
    silenceAfter(message, all[at + 1], { thresholdMs, nowTs, gaps, unheard }),
  );
}

function highs(
  messages: Message[],
  afterMs: number,
  isRequired: (message: Message, next: Message | undefined) => boolean,
): Expected[] {
  return messages.flatMap((message, seq) => {
    if (!isHigh(seq)) return [];
    const ts = message.ts + afterMs;
    return [{ fromTs: ts, toTs: ts, isRequired: isRequired(message, messages[seq + 1]) }];
  });
}

/** When nobody listened, whatever connector the device was at: no device is silent then. */
function surelyUnheard({ gaps, connectors }: Known): Span[] {
  // A gap begins with the last sign of listening, which is given every 5 s.
  const surely = gaps.map((gap) => ({ ...gap, fromTs: gap.fromTs + signMs }));
  const [first = [], ...others] = Map.groupBy(surely, ({ connectorId }) => connectorId).values();
  return others.length + 1 < connectors ? [] : others.reduce<Span[]>(commonTo, first);
}

function commonTo(some: readonly Span[], others: readonly Span[]): Span[] {
  return some.flatMap((one) =>
    others.flatMap((other) => {
      const fromTs = Math.max(one.fromTs, other.fromTs);
      const toTs = Math.min(one.toTs, other.toTs);
      return fromTs < toTs ? [{ fromTs, toTs }] : [];
    }),
  );
}

type Span = { fromTs: number; toTs: number };
type Around = { thresholdMs: number; nowTs: number; gaps: KnownGap[]; unheard: Span[] };

/** Only time counts in which the device's connector listened, as far as that can be known. */
function silenceAfter(
  { ts, ackedTs }: Message,
  next: Message | undefined,
  { thresholdMs, nowTs, gaps, unheard }: Around,
): Expected[] {
  const longestEndTs = next?.ackedTs ?? nowTs;
  const unheardMs = overlapOf({ fromTs: ts, toTs: longestEndTs }, gaps);
  const surelyUnheardMs = overlapOf({ fromTs: ts, toTs: longestEndTs }, unheard);
  if (longestEndTs - ts - surelyUnheardMs < thresholdMs - slackMs) return [];
  const isOver = ackedTs !== null && next !== undefined && next.ackedTs !== null;
  const surelyMs = isOver ? next.ts - ackedTs : 0;
  return [
    {
      fromTs: ts + thresholdMs - slackMs,
      toTs: longestEndTs + slackMs,
      isRequired:
        isOver &&
        unheardMs === 0 &&
        surelyMs >= thresholdMs + slackMs &&
        isAnsweredSoon({ ts, ackedTs }) &&
        isAnsweredSoon(next),
    },
  ];
}

/** While the database is away a process cannot know whether it is heard, and may take that for a gap. */
const isAnsweredSoon = ({ ts, ackedTs }: Message): boolean =>
  ackedTs !== null && ackedTs - ts < soonMs;

function overlapOf({ fromTs, toTs }: Span, gaps: readonly Span[]): number {
  return gaps.reduce(
    (sum, gap) => sum + Math.max(0, Math.min(toTs, gap.toTs) - Math.max(fromTs, gap.fromTs)),
    0,
  );
}
