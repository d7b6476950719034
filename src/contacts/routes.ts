import { z } from 'zod';
import { wakeAlarms } from '../alarms/decide.ts';
import { lockAlarms } from '../alarms/store.ts';
import { doneBy, type DoneBy, insertEntry } from '../audit/audit.ts';
import { ChannelName } from '../contract/actions.ts';
import type { Language } from '../contract/values.ts';
import { sayWarnings, SomeWarnings, warnOfUnknownTo } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { htmlPage, type PageText, readerLanguage } from '../http/docs.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams, TimestampResponse } from '../http/schema.ts';
import { isPrivateHost, network } from '../lib/address.ts';
import {
  type DirectMessage,
  type DirectOutcome,
  enqueueDirect,
} from '../notifications/enqueue-direct.ts';
import { type LinkPurpose, readLinkToken } from '../notifications/channels/email.ts';
import { webhookSecrets } from '../notifications/channels/webhook.ts';
import { endAnnouncements } from '../notifications/outbox.ts';
import { countRecipients, listAnnounced } from '../notifications/recipients.ts';
import { type LimitsOf, lockUsage, quotaExceeded } from '../quotas/quotas.ts';
import {
  confirmContact,
  type ContactKind,
  type ContactRow,
  Contacts,
  ContactsUpdate,
  findAddress,
  LabelsUpdate,
  listAlarmsOf,
  listContacts,
  type NewContact,
  normalAddress,
  removeContacts,
  saveContacts,
  saveLabels,
  TrialAnswer,
  unsubscribeContact,
} from './contacts.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type ContactRouteDeps = ReplaceDeps & {
  /** The keys that sign links in mails, newest first. */
  linkKeys: readonly Buffer[];
  /** The keys that webhook secrets are derived from, newest first. */
  webhookKeys: readonly Buffer[];
  /**
   * Changes labels of devices with `change`, and gives these the limits of their labels; the account's usage is locked.
   * Returns what to do after the commit.
   */
  withLabelLimits: (
    tx: Sql,
    of: { accountId: number; uuids: string[] },
    change: () => Promise<void>,
  ) => Promise<() => void>;
  /** Called when the labels of a device of the account have changed. */
  onLabelled: (accountId: number, nowTs: WallMs) => Promise<void>;
};

/** The routes for an account's contacts, and for the labels that restrict them. */
export function contactRoutes(deps: ContactRouteDeps): Route[] {
  return [read(deps), replace(deps), trial(deps), label(deps), ...contactPageRoutes(deps)];
}

function read(deps: ContactRouteDeps): Route {
  return defineRoute({
    name: 'getContacts',
    method: 'get',
    path: '/v2/accounts/contacts',
    summary: 'Get contacts',
    tag: 'Accounts',
    auth: 'account',
    errors: [],
    response: Contacts,
    secrets: 'always',
    handler: ({ account, request }) => describeContacts(deps, account.accountId, request.now()),
  });
}

function replace(deps: ContactRouteDeps): Route {
  return defineRoute({
    name: 'replaceContacts',
    method: 'put',
    path: '/v2/accounts/contacts',
    summary: 'Replace contacts',
    description:
      'Replaces both lists. An entry that is already there stays confirmed and keeps its ' +
      'identifier and secret. A new e-mail address is sent a link to confirm it.',
    tag: 'Accounts',
    auth: 'account',
    errors: [403],
    body: ContactsUpdate,
    example: {
      emails: [{ address: 'cellar@example.org', labels: ['cellar'] }],
      webhooks: [{ url: 'https://hooks.example.org/sensorium', whenOver: true }],
    },
    response: Contacts.extend({ warnings: SomeWarnings }),
    warnOf: warnOfUnknownTo(ContactsUpdate, Contacts),
    handler: async ({ account, body, request, warnings }) => {
      const by = doneBy(account, request);
      await replaceContacts(deps, account.accountId, { update: body, by });
      const contacts = await describeContacts(deps, account.accountId, request.now());
      return { ...contacts, ...sayWarnings(warnings) };
    },
  });
}

function trial(deps: ContactRouteDeps): Route {
  const { db } = deps;
  return defineRoute({
    name: 'testContacts',
    method: 'post',
    path: '/v2/accounts/contacts/test',
    summary: 'Send a test message to all contacts',
    description: 'The result for each contact is in `last` of Get contacts.',
    tag: 'Accounts',
    auth: 'account',
    takesKey: true,
    errors: [],
    response: TrialAnswer,
    handler: async ({ account: { accountId }, request, once }) => {
      const contacts = (await listContacts(db, accountId)).filter(
        ({ isConfirmed, isUnsubscribed }) => isConfirmed || !isUnsubscribed,
      );
      const messages = contacts.map((contact) => {
        const type: 'confirm' | 'test' =
          contact.kind === 'email' && !contact.isConfirmed ? 'confirm' : 'test';
        return { type, contact };
      });
      return once<TrialAnswer>((keep) =>
        db.transaction(async (tx) => {
          const { address, receivedTs: nowTs } = request;
          const asked = { accountId, address, nowTs };
          const outcomes = await sendToContacts(tx, deps, asked, messages);
          const told = messages.map(({ type, contact: { kind, address } }, index) => ({
            ...(kind === 'email' ? { address } : { url: address }),
            type,
            ...(outcomes[index] ?? { state: 'held-back' as const }),
          }));
          const answer = { messages: told, timestamp: request.now() };
          await keep?.(tx, answer);
          return answer;
        }),
      );
    },
  });
}

function label({ db, onLabelled, withLabelLimits }: ContactRouteDeps): Route {
  return defineRoute({
    name: 'replaceDeviceLabels',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/labels',
    summary: 'Replace the labels of a device',
    description:
      'Contacts that have labels are notified only of devices that have one of them. A device takes the limits of its ' +
      'labels, unless it has limits of its own.',
    tag: 'Devices',
    auth: 'account',
    errors: [404],
    params: DeviceParams,
    body: LabelsUpdate,
    example: { labels: ['cellar'] },
    response: TimestampResponse,
    handler: async ({ account: { accountId }, params, body: { labels }, request }) => {
      const uuid = params.deviceAuthUuid;
      const tell = await db.transaction(async (tx) => {
        await lockUsage(tx, accountId);
        return withLabelLimits(tx, { accountId, uuids: [uuid] }, async () => {
          if (!(await saveLabels(tx, accountId, { uuid, labels })))
            throw new DomainError('not-found', 'There is no such device.');
        });
      });
      tell();
      // In a transaction of its own: whoever locks devices and alarms must lock all of the devices first.
      await onLabelled(accountId, request.receivedTs);
      return { timestamp: request.now() };
    },
  });
}

type PageDeps = { db: Database; linkKeys: readonly Buffer[] };

/**
 * The pages that links in mails lead to. GET shows a button and changes nothing, because mail scanners follow links;
 * POST acts, from the button or from the mail client itself (RFC 8058). Both are idempotent.
 */
function contactPageRoutes(deps: PageDeps): Route[] {
  return [
    ...routesOf('confirm', deps, ({ contactUuid, madeTs }, nowTs) =>
      deps.db.transaction(async (tx) => {
        const accountId = await confirmContact(tx, contactUuid, { madeTs, nowTs });
        if (accountId !== null) await wakeAlarms(tx, accountId, nowTs);
        return accountId !== null;
      }),
    ),
    ...routesOf('unsubscribe', deps, ({ contactUuid }, nowTs) =>
      unsubscribeContact(deps.db, contactUuid, nowTs),
    ),
  ];
}

function routesOf(
  purpose: LinkPurpose,
  { db, linkKeys }: PageDeps,
  perform: (link: { contactUuid: string; madeTs: number }, nowTs: WallMs) => Promise<boolean>,
): Route[] {
  const answer = async (token: string, request: RequestInfo, isAsked: boolean) => {
    const nowTs = request.receivedTs;
    const link = readLinkToken(linkKeys, purpose, { token, nowTs });
    const address = link && (await findAddress(db, link.contactUuid));
    const { invalid, [purpose]: texts } = contactPageWords[readerLanguage(request)];
    if (!link || address === null) return htmlPage(request, invalid);
    if (!isAsked) return htmlPage(request, texts.ask(address));
    return htmlPage(request, (await perform(link, nowTs)) ? texts.done(address) : invalid);
  };
  return (['get', 'post'] as const).map((method) =>
    defineRoute({
      method,
      path: `/${purpose}`,
      summary: purpose,
      tag: 'Pages',
      auth: 'none',
      errors: [],
      hidden: true,
      query: z.object({ token: z.string().max(200).default('') }),
      response: z.unknown(),
      handler: ({ query, request }) => answer(query.token, request, method === 'post'),
    }),
  );
}

type Words = { invalid: PageText } & Record<
  LinkPurpose,
  Record<'ask' | 'done', (address: string) => PageText>
>;

/** The texts of these pages. */
const contactPageWords: Record<Language, Words> = {
  en: {
    invalid: {
      title: 'This link is not valid',
      text: 'The link is too old or incomplete, or its address has since been removed.',
    },
    confirm: {
      ask: (address) => ({
        title: 'Confirm this address',
        text: `Send messages about devices to ${address}?`,
        button: 'Confirm',
      }),
      done: (address) => ({
        title: 'Confirmed',
        text: `Messages will now be sent to ${address}.`,
      }),
    },
    unsubscribe: {
      ask: (address) => ({
        title: 'Unsubscribe',
        text: `Stop sending messages to ${address}?`,
        button: 'Unsubscribe',
      }),
      done: (address) => ({
        title: 'Unsubscribed',
        text: `Unsubscribe will be sent to ${address}.`,
      }),
    },
  },
  de: {
    invalid: {
      title: 'Dieser Link ist ungültig',
      text: 'Der Link ist zu alt oder unvollständig, oder seine Adresse wurde inzwischen entfernt.',
    },
    confirm: {
      ask: (address) => ({
        title: 'Diese Adresse bestätigen',
        text: `Sollen Nachrichten über Geräte an ${address} gesendet werden?`,
        button: 'Bestätigen',
      }),
      done: (address) => ({
        title: 'Bestätigt',
        text: `Ab jetzt werden Nachrichten an ${address} gesendet.`,
      }),
    },
    unsubscribe: {
      ask: (address) => ({
        title: 'Abbestellen',
        text: `Sollen an ${address} keine Nachrichten mehr gesendet werden?`,
        button: 'Abbestellen',
      }),
      done: (address) => ({
        title: 'Abbestellt',
        text: `An ${address} werden keine Nachrichten mehr gesendet.`,
      }),
    },
  },
};

type Deps = { db: Sql; webhookKeys: readonly Buffer[] };

/** The answer of GET and PUT /v2/accounts/contacts. */
async function describeContacts(
  { db, webhookKeys }: Deps,
  accountId: number,
  nowTs: WallMs,
): Promise<Contacts> {
  const contacts = await listContacts(db, accountId);
  const channels = await listAnnounced(db, nowTs);
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
    pushTokens: (await countRecipients(db, accountId)).tokens,
    channels: Object.fromEntries(
      ChannelName.options.map((name) => [name, channels.includes(name)]),
    ) as Contacts['channels'],
    timestamp: nowTs,
  };
}

const common = ({ labels, afterMs, whenOver, minSeverity }: ContactRow) => ({
  labels,
  afterMs,
  whenOver,
  minSeverity,
});

function lastOf({
  lastTs,
  lastState,
  lastReason,
}: ContactRow): Pick<Contacts['emails'][0], 'last'> {
  if (lastTs === null || lastState === null) return {};
  const reason = lastReason === null ? {} : { reason: lastReason };
  return { last: { timestamp: lastTs, state: lastState, ...reason } };
}

type ReplaceDeps = {
  db: Database;
  limitsOf: LimitsOf;
  /** Anybody can register. */
  isOpen: boolean;
  isPrivateAllowed: boolean;
};

/** Queues messages to contacts of an account in the caller's transaction. `address`: the client's IP address. */
const sendToContacts = (
  tx: Sql,
  { limitsOf: quotasOf, isOpen }: Pick<ReplaceDeps, 'limitsOf' | 'isOpen'>,
  { accountId, address, nowTs }: { accountId: number; address: string; nowTs: WallMs },
  messages: DirectMessage[],
): Promise<DirectOutcome[]> =>
  enqueueDirect(tx, accountId, messages, { quotasOf, nowTs, network: network(address), isOpen });

/**
 * Replaces an account's contacts, and asks each new e-mail address for confirmation. Throws `quota-exceeded` if there
 * would be more than before and more than the quota.
 */
async function replaceContacts(
  deps: ReplaceDeps,
  accountId: number,
  { update, by }: { update: ContactsUpdate; by: DoneBy },
): Promise<void> {
  const { db, limitsOf, isPrivateAllowed } = deps;
  if (!isPrivateAllowed) refusePrivate(update);
  const wanted = contactsOf(update);
  await db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    const before = await listContacts(tx, accountId);
    const limit = limitsOf(accountId).contacts;
    if (wanted.length > limit && wanted.length > before.length)
      throw quotaExceeded({ quota: 'contacts', limit, used: before.length });
    const keys = new Set(wanted.map(keyOf));
    const gone = before.filter((contact) => !keys.has(keyOf(contact)));
    const ids = gone.map(({ contactId }) => contactId);
    await lockAlarms(tx, await listAlarmsOf(tx, ids));
    await endAnnouncements(tx, await removeContacts(tx, ids, by.ts), by.ts);
    const added = await saveContacts(tx, accountId, wanted);
    const messages = added
      .filter(({ kind }) => kind === 'email')
      .map((contact) => ({ type: 'confirm' as const, contact }));
    const asked = { accountId, address: by.actor.address ?? '', nowTs: by.ts };
    await sendToContacts(tx, deps, asked, messages);
    await wakeAlarms(tx, accountId, by.ts);
    const details = { changed: ['contacts'] };
    await insertEntry(tx, accountId, { kind: 'settings-changed', ...by, details });
  });
}

const keyOf = ({ kind, normal }: { kind: ContactKind; normal: string }) => `${kind} ${normal}`;

function contactsOf({ emails, webhooks }: ContactsUpdate): NewContact[] {
  const entry = (
    kind: ContactKind,
    address: string,
    rest: ContactsUpdate['emails'][number],
    place: number,
  ) => {
    const { labels, afterMs, whenOver, minSeverity } = rest;
    return {
      kind,
      address,
      normal: normalAddress(kind, address),
      labels,
      afterMs,
      whenOver,
      minSeverity,
      place,
    };
  };
  return [
    ...emails.map((one, place) => entry('email', one.address, one, place)),
    ...webhooks.map(({ url, ...rest }, place) =>
      entry('webhook', url, { address: url, ...rest }, place),
    ),
  ];
}

/** A name that resolves to a private address is refused later, when connecting. */
function refusePrivate({ webhooks }: ContactsUpdate): void {
  const problems = webhooks.flatMap(({ url }, index) =>
    isPrivateHost(URL.parse(url)?.hostname ?? '')
      ? [
          {
            path: `/webhooks/${index}/url`,
            message:
              'expected an address on the public internet; only the operator can allow others',
          },
        ]
      : [],
  );
  if (problems.length > 0)
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}
