import type { KnownGap, Message, Watched } from './evidence.ts';
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

/** What is to fire of what a device sent, in its order. Nothing else may. */
export function expectedOf(device: Watched, nowTs: number, gaps: KnownGap[]): Expected[] {
  const { role, messages } = device;
  const { thresholdMs } = rules[role];
  if (role === 'swinging') return highs(messages, 0, ({ ackedTs }) => ackedTs !== null);
  if (role === 'lasting')
    // A later message forces what no tick has brought by then.
    return highs(messages, thresholdMs, (_, next) => (next?.ackedTs ?? null) !== null);
  const first: Message = { ts: device.installedTs, ackedTs: messages[0]?.ackedTs ?? nowTs };
  return [first, ...messages].flatMap((message, at, all) =>
    silenceAfter(message, all[at + 1], { thresholdMs, nowTs, gaps }),
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

type Around = { thresholdMs: number; nowTs: number; gaps: KnownGap[] };

/** Only time counts in which the service listened, as far as it can know. */
function silenceAfter(
  { ts, ackedTs }: Message,
  next: Message | undefined,
  { thresholdMs, nowTs, gaps }: Around,
): Expected[] {
  const longestEndTs = next?.ackedTs ?? nowTs;
  const unheardMs = overlapOf({ fromTs: ts, toTs: longestEndTs }, gaps);
  // A gap begins with the last sign of listening, which is given every 5 s.
  const surely = gaps.map(({ fromTs, toTs }) => ({ fromTs: fromTs + signMs, toTs }));
  const surelyUnheardMs = overlapOf({ fromTs: ts, toTs: longestEndTs }, surely);
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

function overlapOf({ fromTs, toTs }: KnownGap, gaps: KnownGap[]): number {
  return gaps.reduce(
    (sum, gap) => sum + Math.max(0, Math.min(toTs, gap.toTs) - Math.max(fromTs, gap.fromTs)),
    0,
  );
}
