import type { Evidence, KnownGap, Message, Watched } from './evidence.ts';
import { isHigh, rules } from './roles.ts';

/** A firing with a time between these. `isRequired`: it has to exist; otherwise it may. */
export type Expected = { fromTs: number; toTs: number; isRequired: boolean };

/**
 * How closely this process's time agrees with the service's, and how closely the arrival of a message is known. At the
 * start a busy process may be wrong by half the duration of its database's answer.
 */
const slackMs = 1_000;
const soonMs = 3_000;
const signMs = 6_000;

/** What is known besides the device. */
type Known = Pick<Evidence, 'nowTs' | 'gaps' | 'connectors'>;

/** What should fire for what a device sent, in order. Nothing else may. */
export function expectedOf(device: Watched, known: Known): Expected[] {
  const { nowTs, gaps } = known;
  const { role, messages } = device;
  const { thresholdMs } = rules[role];
  if (role === 'swinging') return highs(messages, 0, ({ ackedTs }) => ackedTs !== null);
  if (role === 'lasting')
    // A later message forces what no tick has triggered by then.
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

/** When nobody listened, whichever connector the device used. No device counts as silent then. */
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

/** Only time in which the device's connector listened counts, as far as that is known. */
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

/** While the database is away a process cannot know whether it listens, and may take that for a gap. */
const isAnsweredSoon = ({ ts, ackedTs }: Message): boolean =>
  ackedTs !== null && ackedTs - ts < soonMs;

function overlapOf({ fromTs, toTs }: Span, gaps: readonly Span[]): number {
  return gaps.reduce(
    (sum, gap) => sum + Math.max(0, Math.min(toTs, gap.toTs) - Math.max(fromTs, gap.fromTs)),
    0,
  );
}
