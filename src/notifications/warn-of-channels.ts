import type { Purpose, PurposePath } from '../contract/purpose.ts';
import type { Problem } from '../errors.ts';

/** What there is to reach people by, when a profile is installed. */
export type ReachablePeople = {
  /** Channels that a process which delivers has. */
  channels: readonly string[];
  /** How many of the account there are; of e-mail the confirmed ones. */
  tokens: number;
  emails: number;
  unconfirmed: number;
  webhooks: number;
};

/** Channels that purposes ask for and that lead to nobody, at the first place that asks. */
export function warnOfChannels(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  reachable: ReachablePeople,
): Problem[] {
  const { push, sms } = findFirst(purposes, pathOf);
  return [
    ...(push === null ? [] : messagesOfPush(reachable).map((message) => ({ path: push, message }))),
    ...(sms === null || reachable.channels.includes('sms')
      ? []
      : [{ path: sms, message: 'no SMS provider is configured: SMS go to the log only' }]),
  ];
}

function messagesOfPush({
  channels,
  tokens,
  emails,
  unconfirmed,
  webhooks,
}: ReachablePeople): string[] {
  const messages: string[] = [];
  const lacks = (channel: string) => !channels.includes(channel);
  if (tokens > 0 && lacks('push')) messages.push('push is not configured: no token gets a message');
  if (emails + unconfirmed > 0 && lacks('email'))
    messages.push('mail is not configured (SMTP_URL): no address gets a message');
  if (emails + tokens + webhooks > 0) return messages;
  const waiting = unconfirmed > 0 ? ': no address is confirmed yet' : '';
  return [...messages, `nobody would be told${waiting || ': the account has no contact'}`];
}

function findFirst(purposes: readonly Purpose[], pathOf: PurposePath) {
  const first: { push: string | null; sms: string | null } = { push: null, sms: null };
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions`;
        if (actions.cloud?.sendPush) first.push ??= `${path}/cloud/sendPush`;
        const { text, phoneNumber = [] } = actions.sms ?? {};
        if (text && phoneNumber.length > 0) first.sms ??= `${path}/sms`;
      }
  return first;
}
