import { z } from 'zod';
import { htmlPage, type PageText, readerLanguage } from '../http/html-page.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { confirmEmailChange, findLinkedChange } from './change-email.ts';
import type { AccountsDeps } from './deps.ts';
import { findResetOwner, resetPassword } from './forgotten-password.ts';
import { recoveryWords } from './recovery-words.ts';
import { Password } from './schema.ts';

const common = {
  tag: 'Pages',
  auth: 'none',
  errors: [],
  hidden: true,
  query: z.object({ token: z.string().max(200).default('') }),
  response: z.unknown(),
} as const;

const nobodyAt = ({ address, receivedTs: ts }: RequestInfo) =>
  ({ actor: { by: 'nobody', sessionId: null, address }, ts }) as const;

const wordsFor = (request: RequestInfo) => recoveryWords[readerLanguage(request)];

/** What was done; from there the console is one step away, where it is served. */
function donePage(request: RequestInfo, { hasConsole }: AccountsDeps, done: PageText) {
  const link = { to: '/console/', text: wordsFor(request).signIn };
  return htmlPage(request, hasConsole ? { ...done, link } : done);
}

/**
 * Where links in mails to accounts lead. GET uses nothing up, for mail scanners follow links; POST, by the
 * button, does it once.
 */
export function recoveryPages(deps: AccountsDeps): Route[] {
  return [...resetPages(deps), ...confirmPages(deps)];
}

function resetPages(deps: AccountsDeps): Route[] {
  const find = (token: string, { receivedTs }: RequestInfo) =>
    findResetOwner(deps, token, receivedTs);
  return [
    defineRoute({
      ...common,
      method: 'get',
      path: '/reset',
      summary: 'reset',
      handler: async ({ query: { token }, request }) => {
        const { askPassword, invalid } = wordsFor(request);
        const owner = await find(token, request);
        return htmlPage(request, owner ? askPassword(owner.email) : invalid);
      },
    }),
    defineRoute({
      ...common,
      method: 'post',
      path: '/reset',
      summary: 'reset',
      isForm: true,
      body: z.object({ password: z.string().default('') }),
      handler: async ({ query: { token }, body, request }) => {
        const { askPassword, invalid, passwordSet } = wordsFor(request);
        const password = Password.safeParse(body.password);
        if (!password.success) {
          const owner = await find(token, request);
          if (!owner) return htmlPage(request, invalid);
          const { tooShort, ...page } = askPassword(owner.email);
          return htmlPage(request, { ...page, text: `${tooShort} ${page.text}` });
        }
        const { address } = request;
        const reset = { token, password: password.data, address };
        const isSet = await resetPassword(deps, reset, nobodyAt(request));
        return isSet ? donePage(request, deps, passwordSet) : htmlPage(request, invalid);
      },
    }),
  ];
}

function confirmPages(deps: AccountsDeps): Route[] {
  const path = '/confirm-email';
  return [
    defineRoute({
      ...common,
      method: 'get',
      path,
      summary: 'confirm-email',
      handler: async ({ query: { token }, request }) => {
        const { askAddress, invalid } = wordsFor(request);
        const change = await findLinkedChange(deps, token, request.receivedTs);
        return htmlPage(request, change ? askAddress(change.email) : invalid);
      },
    }),
    defineRoute({
      ...common,
      method: 'post',
      path,
      summary: 'confirm-email',
      handler: async ({ query: { token }, request }) => {
        const email = await confirmEmailChange(deps, token, nobodyAt(request));
        const { addressSet, invalid } = wordsFor(request);
        if (email === null) return htmlPage(request, invalid);
        return donePage(request, deps, addressSet(email));
      },
    }),
  ];
}
