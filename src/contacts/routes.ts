import { doneBy } from '../audit/entry.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings, SomeWarnings } from '../contract/warnings.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams, TimestampResponse } from '../http/schema.ts';
import { describeContacts } from './describe-contacts.ts';
import { contactPageRoutes } from './page-routes.ts';
import { listContacts, saveLabels } from './contacts.ts';
import { replaceContacts, type ReplaceDeps } from './replace-contacts.ts';
import { Contacts, ContactsUpdate, LabelsUpdate, TrialAnswer } from './schema.ts';

export type ContactRouteDeps = ReplaceDeps & {
  /** What links in mails are signed with, newest first. */
  linkKeys: readonly Buffer[];
  /** What the secrets of webhooks are derived from, newest first. */
  webhookKeys: readonly Buffer[];
  /** Labels of a device of the account changed. */
  onLabelled: (accountId: number, nowTs: number) => Promise<void>;
};

/** Whom an account is told by, and what confines them. */
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
      'Replaces both lists. An entry that was there stays confirmed and keeps its identifier and secret; ' +
      'an e-mail address that is new is sent a link, by which it is confirmed.',
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

function trial({ db, sendToContacts }: ContactRouteDeps): Route {
  return defineRoute({
    name: 'testContacts',
    method: 'post',
    path: '/v2/accounts/contacts/test',
    summary: 'Send a trial to all contacts',
    description: 'What became of each is in `last` of Get contacts.',
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
          const outcomes = await sendToContacts(tx, accountId, messages, request.address);
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

function label({ db, onLabelled }: ContactRouteDeps): Route {
  return defineRoute({
    name: 'replaceDeviceLabels',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/labels',
    summary: 'Replace the labels of a device',
    description: 'Contacts that have labels are told only of devices that have one of them.',
    tag: 'Devices',
    auth: 'account',
    errors: [404],
    params: DeviceParams,
    body: LabelsUpdate,
    example: { labels: ['cellar'] },
    response: TimestampResponse,
    handler: async ({ account: { accountId }, params, body: { labels }, request }) => {
      const uuid = params.deviceAuthUuid;
      if (!(await saveLabels(db, accountId, { uuid, labels })))
        throw new DomainError('not-found', 'There is no such device.');
      // Not in one transaction: whoever locks a device and alarms locks all of its devices first.
      await onLabelled(accountId, request.receivedTs);
      return { timestamp: request.now() };
    },
  });
}
