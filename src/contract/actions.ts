import { z } from 'zod';
import type { Action, Fired } from './actions/action.ts';
import { alarm, alarmMembers } from './actions/alarm.ts';
import { move, moveMembers } from './actions/move.ts';
import { push, pushMembers } from './actions/push.ts';
import { record, recordMembers } from './actions/record.ts';
import { showText, showTextMembers } from './actions/show-text.ts';
import { sms, smsMembers } from './actions/sms.ts';
import type { NewNotification } from './notification.ts';
import type { Downlink } from './uplink.ts';

/** What a firing does, beside being recorded by the event's own `eventLog`; specification section 2.5. */
export const Actions = z
  .object({
    sms: z.object(smsMembers).meta({ id: 'SmsAction' }).optional(),
    cloud: z
      .object({ ...recordMembers, ...pushMembers })
      .meta({ id: 'CloudAction' })
      .optional(),
    engine: z.object(moveMembers).meta({ id: 'EngineAction' }).optional(),
    display: z.object(showTextMembers).meta({ id: 'DisplayAction' }).optional(),
    ...alarmMembers,
  })
  .meta({ id: 'Actions' });
export type Actions = z.infer<typeof Actions>;

/** Every kind of action there is: one more is a file beside these, its members above, and its name here. */
export const actionKinds: readonly Action<Actions>[] = [record, push, sms, showText, move, alarm];

export type Kinds = readonly Action<Actions>[];

/** The kinds of action that an event with these actions asks for. */
export function listAsked(actions: Actions, kinds: Kinds = actionKinds): Kinds {
  return kinds.filter((kind) => kind.isAsked(actions));
}

/** What the device is sent for a firing. */
export function messagesOf(actions: Actions, fired: Fired, kinds?: Kinds): Downlink[] {
  return listAsked(actions, kinds).flatMap((kind) =>
    kind.reaches === 'device' ? kind.message(actions, fired) : [],
  );
}

/** What people are sent for the first firing of an episode; made one by one. */
export function* notificationsAsked(
  actions: Actions,
  fired: Fired,
  kinds?: Kinds,
): Iterable<NewNotification> {
  for (const kind of listAsked(actions, kinds))
    if (kind.reaches === 'people') yield* kind.notifications(actions, fired);
}

/** Whether a firing of the event moves the device, or would if its profile had the place. */
export function asksForMove({ engine }: Actions): boolean {
  return engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined;
}
