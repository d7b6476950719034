import { z } from 'zod';
import { htmlPage, type PageText } from '../http/html-page.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { confirmEmailChange, findLinkedChange } from './change-email.ts';
import type { AccountsDeps } from './deps.ts';
import { findResetOwner, resetPassword } from './forgotten-password.ts';
import { Password } from './schema.ts';

const invalid: PageText = {
  title: 'This link is not valid',
  text: 'It is older than 30 minutes, was used already, or was cut off. Ask for another one.',
};

const askPassword = (email: string, hint = ''): PageText => ({
  title: 'A new password',
  text: `${hint}For the account ${email}. All its sessions end.`,
  password: 'New password, 8 to 128 characters',
  button: 'Set the password',
});

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
        const password = Password.safeParse(body.password);
        if (!password.success) {
          const owner = await find(token, request);
          const hint = 'The password needs 8 to 128 characters. ';
          return htmlPage(request, owner ? askPassword(owner.email, hint) : invalid);
        }
        const { address } = request;
        const reset = { token, password: password.data, address };
        const isSet = await resetPassword(deps, reset, nobodyAt(request));
        const done = { title: 'The password was set', text: 'Log in with it from now on.' };
        return htmlPage(request, isSet ? done : invalid);
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
        const change = await findLinkedChange(deps, token, request.receivedTs);
        if (!change) return htmlPage(request, invalid);
        const text = `The account is to have the address ${change.email}. All its sessions end.`;
        return htmlPage(request, { title: 'Confirm this address', text, button: 'Confirm' });
      },
    }),
    defineRoute({
      ...common,
      method: 'post',
      path,
      summary: 'confirm-email',
      handler: async ({ query: { token }, request }) => {
        const email = await confirmEmailChange(deps, token, nobodyAt(request));
        if (email === null) return htmlPage(request, invalid);
        const text = `The account has the address ${email} from now on. Log in with it.`;
        return htmlPage(request, { title: 'Confirmed', text });
      },
    }),
  ];
}
