import type { Sql } from '../db/sql.ts';
import { type ContactRow, countPushTokens, listChannels, listContacts } from './contacts.ts';
import type { Contacts } from './schema.ts';
import { webhookSecrets } from './webhook-secret.ts';

type Deps = { db: Sql; webhookKeys: readonly Buffer[] };

/** The answer of GET and PUT /v2/accounts/contacts. */
export async function describeContacts(
  { db, webhookKeys }: Deps,
  accountId: number,
  nowTs: number,
): Promise<Contacts> {
  const contacts = await listContacts(db, accountId);
  const channels = await listChannels(db, nowTs);
  const of = (kind: ContactRow['kind']) => contacts.filter((contact) => contact.kind === kind);
  return {
    emails: of('email').map((contact) => ({
      address: contact.address,
      ...common(contact),
      confirmed: contact.isConfirmed,
      ...(contact.isUnsubscribed && !contact.isConfirmed ? { unsubscribed: true } : {}),
      ...lastOf(contact),
    })),
    webhooks: of('webhook').map((contact) => ({
      url: contact.address,
      ...common(contact),
      webhookId: contact.uuid,
      secret: webhookSecrets(webhookKeys, contact.uuid)[0] ?? '',
      ...lastOf(contact),
    })),
    pushTokens: await countPushTokens(db, accountId),
    channels: {
      push: channels.includes('push'),
      sms: channels.includes('sms'),
      email: channels.includes('email'),
      webhook: channels.includes('webhook'),
    },
    timestamp: nowTs,
  };
}

const common = ({ labels, afterMs, whenOver }: ContactRow) => ({ labels, afterMs, whenOver });

function lastOf({
  lastTs,
  lastState,
  lastReason,
}: ContactRow): Pick<Contacts['emails'][0], 'last'> {
  if (lastTs === null || lastState === null) return {};
  const reason = lastReason === null ? {} : { reason: lastReason };
  return { last: { timestamp: lastTs, state: lastState, ...reason } };
}
