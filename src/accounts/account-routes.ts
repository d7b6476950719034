import { Language } from '../contract/language.ts';
import { z } from 'zod';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings, SomeWarnings } from '../contract/warnings.ts';
import { doneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import { cursorQuery, linkNext } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorTs,
  limitQuery,
  MessageResponse,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import { TimestampResponse } from '../http/schema.ts';
import { deleteAccount } from './delete-account.ts';
import { turnOfAccount } from './login-limits.ts';
import { listAccountEvents } from './list-events.ts';
import { getAccount } from './find-account.ts';
import { insertAccountEvent, updateAccount } from './queries.ts';
import type { AccountsDeps } from './deps.ts';
import { AccountEvent, AccountUpdate } from './schema.ts';

const EventsQuery = z.object({
  limit: limitQuery(10),
  start: timestampQuery.optional(),
  end: timestampQuery.optional(),
  cursor: cursorQuery(z.object({ ts: cursorTs, id: z.int() })),
});

/** Specification 4.2, but for what hands out tokens. */
export function accountRoutes(deps: AccountsDeps): Route[] {
  const { db } = deps;
  return [
    defineRoute({
      name: 'getAccount',
      method: 'get',
      path: '/v2/accounts',
      summary: 'Get Account',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: z.object({
        timestamp,
        email: z.string(),
        name: z.string().nullable(),
        timeZone: z.string(),
        language: Language,
      }),
      handler: async ({ account: { accountId }, request }) => {
        const { email, name, timeZone, language } = await getAccount(db, accountId);
        return {
          timestamp: request.now(),
          email,
          name,
          timeZone: timeZone ?? 'UTC',
          language: language ?? 'en',
        };
      },
    }),
    defineRoute({
      name: 'updateAccount',
      method: 'put',
      path: '/v2/accounts',
      summary: 'Update Account',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      body: AccountUpdate,
      example: { name: 'Ada', timeZone: 'Europe/Berlin', language: 'en' },
      response: TimestampResponse.extend({ warnings: SomeWarnings }),
      warnOf: warnOfUnknownTo(AccountUpdate, z.object({ timestamp })),
      handler: async ({ account, body, request, warnings }) => {
        const { accountId } = account;
        const by = doneBy(account, request);
        const details = { changed: Object.keys(body) };
        await db.transaction(async (tx) => {
          await updateAccount(tx, accountId, body);
          await insertAccountEvent(tx, accountId, 'update', by.ts);
          await insertEntry(tx, accountId, { kind: 'settings-changed', ...by, details });
          if (body.apn) await deps.onPushTokens?.(tx, accountId, by.ts);
        });
        return { timestamp: request.now(), ...sayWarnings(warnings) };
      },
    }),
    defineRoute({
      name: 'deleteAccount',
      method: 'delete',
      path: '/v2/accounts',
      summary: 'Delete Account',
      description: 'Removes the account with its devices, purposes, events and measurements.',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: MessageResponse,
      handler: async ({ account: { accountId }, request }) => {
        await deleteAccount(deps, accountId, turnOfAccount(accountId, request.address));
        return { timestamp: request.now(), message: 'The account was deleted.' };
      },
    }),
    defineRoute({
      name: 'listAccountEvents',
      method: 'get',
      path: '/v2/accounts/events',
      summary: 'Get account events',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      responseHeaders: { Link: 'The next page: `<…>; rel="next"`; absent on the last.' },
      query: EventsQuery,
      response: z.object({ timestamp, events: z.array(AccountEvent) }),
      handler: async ({ account, query, request }) => {
        const { events, next } = await listAccountEvents(db, account, query);
        if (next) linkNext(request, next);
        return { timestamp: request.now(), events };
      },
    }),
  ];
}
