import { type Actions, notificationsAsked } from '../contract/actions.ts';
import type { SenseEvent } from '../contract/event.ts';
import type { NotNotified } from '../contract/not-notified.ts';
import type { Announced, NewNotification } from '../contract/notification.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { findConfigured } from './process-queries.ts';
import { enqueueNotifications } from './enqueue.ts';
import { isLimit, type Reason } from './reasons.ts';
import type { EnqueueOptions, MessageChannel } from './sort-out.ts';

/** What people are to be told. */
export type Ask = Announced & {
  device: DeviceIdentity;
  event: SenseEvent;
  actions: Actions;
  /** The event's, empty where it has none. */
  name: string;
};

/** What became of an ask. `queued`: messages for now; `planned`: by `afterMs`. Both 0: why nobody is told. */
export type Told = { queued: number; planned: number; notNotified: NotNotified | null };

export type TellOptions = Omit<EnqueueOptions, 'configured' | 'note'> & {
  /** The channels of this process; those of others are read from the database. */
  ownChannels: readonly MessageChannel[];
};

/**
 * Queues what people are to be told within the caller's transaction, and answers for each ask, in their order,
 * how many messages that makes, or why it makes none.
 */
export async function tell(tx: Sql, asks: readonly Ask[], options: TellOptions): Promise<Told[]> {
  if (asks.length === 0) return [];
  const { ownChannels, ...rest } = options;
  const configured = await findConfigured(tx, ownChannels, options.nowMs);
  const tallies = asks.map(() => ({ queued: 0, planned: 0, reasons: new Set<Reason>() }));
  const placeOf = new Map<NewNotification, number>();
  for (const [place, ask] of asks.entries())
    for (const notification of notificationsOf(ask)) placeOf.set(notification, place);
  await enqueueNotifications(tx, placeOf.keys(), {
    ...rest,
    configured,
    note: (notification, decided) => {
      const tally = tallies[placeOf.get(notification) ?? -1];
      if (!tally) return;
      if (decided === 'queued' || decided === 'planned') tally[decided] += 1;
      else tally.reasons.add(decided);
    },
  });
  return tallies.map(({ queued, planned, reasons }) => ({
    queued,
    planned,
    notNotified: queued + planned > 0 ? null : whyNobody(reasons),
  }));
}

function notificationsOf(ask: Ask): NewNotification[] {
  const { device, event, actions, name, ...about } = ask;
  const { type, alarmId, announcement, sinceTs, lastHeardTs } = about;
  const announced: Announced = { type, alarmId, announcement, sinceTs, lastHeardTs };
  return [...notificationsAsked(actions, { device, event, name })].map((notification) => ({
    ...notification,
    about: announced,
  }));
}

/** The first that applies. A number that is none is no recipient. */
function whyNobody(reasons: ReadonlySet<Reason>): NotNotified {
  const all = [...reasons];
  if (all.some(isLimit)) return 'held-back';
  if (all.some((reason) => reason === 'sms-not-allowed' || reason === 'number-refused'))
    return 'not-allowed';
  const missing: Reason[] = ['no-provider', 'no-mail-server', 'no-sms-provider'];
  return all.some((reason) => missing.includes(reason)) ? 'not-configured' : 'no-recipient';
}
