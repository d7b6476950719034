import type { SenseEvent } from '../contract/event.ts';
import { DeliveryError } from './channels/channel.ts';
import type { EmailDriver } from './channels/email.ts';
import type { Drivers } from './channels/open.ts';
import type { HookDriver } from './channels/webhook.ts';
import { type HookLinks, hookPayload } from './webhook-docs.ts';
import type { Turn } from './turn.ts';
import { wordsOf } from './words/words-of.ts';

/** What makes links for the mails to a contact, and the secrets of a webhook. */
export type ContactKeys = {
  confirmUrl: (contactUuid: string) => string;
  unsubscribeUrl: (contactUuid: string) => string;
  webhookSecrets: (contactUuid: string) => string[];
  /** Where an alarm is read; undefined where nobody said under which address this service is reached. */
  alarmUrl: (alarmId: number) => string | undefined;
  /** Where a person looks at a device; undefined without the console. */
  deviceUrl: (deviceUuid: string) => string | undefined;
};

/** Which recorded event this is; undefined where it is not recorded. */
export type FindEventId = (
  deviceUuid: string,
  cause: Pick<SenseEvent['cause'], 'engine' | 'senses'>,
) => Promise<string | undefined>;

export type SendDeps = {
  drivers: Drivers;
  /** Null: no SMTP server is configured. */
  email: EmailDriver | null;
  hooks: HookDriver;
  findEventId: FindEventId;
  keys: ContactKeys;
};

/** Hands a message over by its channel. Rejects with a `DeliveryError`. */
export async function send(deps: SendDeps, turn: Turn): Promise<void> {
  switch (turn.kind) {
    case 'push':
    case 'sms':
      return deps.drivers[turn.kind].send(messageOf(turn));
    case 'email':
      return sendMail(deps, turn, turn.contactUuid ?? '');
    case 'webhook': {
      const secrets = deps.keys.webhookSecrets(turn.contactUuid ?? '');
      const { id, recipient: url } = turn;
      const payload = hookPayload(turn, await linksOf(deps, turn));
      return deps.hooks.send({ id, url, secrets, payload, timeoutMs: timeoutOf(turn) });
    }
  }
}

const hastyMs = 1_500;

/**
 * Who did not answer the last time is left soon, but for each third time: a receiver that needs longer is
 * reached as well, and one that hangs costs little. Undefined: as long as any.
 */
const timeoutOf = ({ lane, attempts }: Turn): number | undefined =>
  lane === 'webhook-unanswered' && attempts % 3 !== 0 ? hastyMs : undefined;

async function linksOf(
  { findEventId, keys }: SendDeps,
  { deviceUuid, data, alarmId }: Turn,
): Promise<HookLinks> {
  return {
    eventId: deviceUuid !== null && data ? await findEventId(deviceUuid, data) : undefined,
    alarmUrl: alarmId === null ? undefined : keys.alarmUrl(alarmId),
  };
}

const messageOf = ({ id, recipient, title, body, deviceUuid, engine }: Turn) => ({
  id,
  recipient,
  title,
  body,
  data: { deviceAuthUuid: deviceUuid ?? '', ...engine },
});

async function sendMail(
  { email, keys }: SendDeps,
  { id, recipient, type, title, body, language, deviceUuid }: Turn,
  contactUuid: string,
): Promise<void> {
  if (!email) throw new DeliveryError('never', 'no-mail-server', 'SMTP_URL is not set.');
  const words = wordsOf(language);
  const deviceUrl = deviceUuid === null ? undefined : keys.deviceUrl(deviceUuid);
  const text =
    type === 'confirm'
      ? { title: words.confirmTitle, body: words.confirmBody(keys.confirmUrl(contactUuid)) }
      : { title, body: deviceUrl === undefined ? body : `${body}\n${deviceUrl}` };
  const unsubscribeUrl = keys.unsubscribeUrl(contactUuid);
  const { unsubscribe } = words;
  await email.send({ id, recipient, ...text, unsubscribeUrl, unsubscribe });
}
