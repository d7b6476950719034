import { z } from 'zod';
import { doneBy } from '../audit/audit.ts';
import type { Language } from '../contract/values.ts';
import { DomainError } from '../errors.ts';
import { htmlPage, type PageText, readerLanguage } from '../http/docs.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleLogin, MessageResponse } from '../http/schema.ts';
import {
  type AccountsDeps,
  askForEmailChange,
  askForReset,
  confirmEmailChange,
  findLinkedChange,
  findResetOwner,
  resetPassword,
} from './account.ts';
import { EmailChange, ForgottenPassword, Password, PasswordReset } from './schema.ts';

/** Beyond the specification: recovers an account, and changes its address. */
export function recoveryRoutes(deps: AccountsDeps): Route[] {
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  return [
    defineRoute({
      name: 'forgetPassword',
      method: 'post',
      path: '/v2/accounts/password/forgotten',
      summary: 'Request a link to set a new password',
      description:
        'The answer is the same whether or not the account exists. The link is valid for 30 ' +
        'minutes and can be used once. 503: this service cannot send e-mail.',
      tag: 'Accounts',
      auth: 'none',
      errors: [429],
      body: ForgottenPassword,
      example: { email: exampleLogin.email },
      response: MessageResponse,
      handler: async ({ body: { email }, request }) => {
        const { address, receivedTs } = request;
        await refuseSlowly(() => askForReset(deps, { email, address }, receivedTs), request);
        const message = 'If an account with this address exists, a link was sent there.';
        return { timestamp: request.now(), message };
      },
    }),
    defineRoute({
      name: 'resetPassword',
      method: 'post',
      path: '/v2/accounts/password/reset',
      summary: 'Set a new password with a link',
      description: 'Ends every session of the account and invalidates every other link.',
      tag: 'Accounts',
      auth: 'none',
      errors: [429],
      body: PasswordReset,
      example: { token: 'the part of the link after ?token=', password: exampleLogin.password },
      response: MessageResponse,
      handler: async ({ body, request }) => {
        const { address, receivedTs: ts } = request;
        const by = { actor: { by: 'nobody', sessionId: null, address }, ts } as const;
        const reset = () => resetPassword(deps, { ...body, address }, by);
        if (!(await refuseSlowly(reset, request))) throw invalidLink();
        return { timestamp: request.now(), message: 'The password is set; log in with it.' };
      },
    }),
    defineRoute({
      name: 'changeEmail',
      method: 'put',
      path: '/v2/accounts/email',
      summary: 'Change the e-mail address',
      description:
        'The service sends a link to the new address. Once it is confirmed there, the address ' +
        'changes, every session ends, and the old address is notified. 503: this service ' +
        'cannot send e-mail.',
      tag: 'Accounts',
      auth: 'account',
      errors: [403],
      body: EmailChange,
      example: { password: exampleLogin.password, email: 'ada.lovelace@example.org' },
      response: MessageResponse,
      handler: async ({ account, body, request }) => {
        const { accountId } = account;
        await askForEmailChange(deps, { accountId, ...body }, doneBy(account, request));
        const message = 'A link to confirm the new address was sent to it.';
        return { timestamp: request.now(), message };
      },
    }),
  ];
}

function invalidLink(): DomainError {
  return new DomainError('invalid-input', 'The link is not valid.', {
    problems: [{ path: '/token', message: 'is too old, has been used, or is incomplete' }],
  });
}

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

/** A page that says what was done, with a link to the console if there is one. */
function donePage(request: RequestInfo, { hasConsole }: AccountsDeps, done: PageText) {
  const link = { to: '/console/', text: wordsFor(request).signIn };
  return htmlPage(request, hasConsole ? { ...done, link } : done);
}

/**
 * The pages that links in mails to accounts lead to. GET uses nothing up, because mail scanners follow links; POST,
 * from the button, works once.
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

type Words = {
  invalid: PageText;
  askPassword: (email: string) => PageText & { tooShort: string };
  passwordSet: PageText;
  askAddress: (email: string) => PageText;
  addressSet: (email: string) => PageText;
  /** The link to the console, if there is one. */
  signIn: string;
};

/** The texts of these pages. */
const recoveryWords: Record<Language, Words> = {
  en: {
    invalid: {
      title: 'This link is not valid',
      text:
        'The link is older than 30 minutes, has already been used, or is incomplete. Request ' +
        'another one.',
    },
    askPassword: (email) => ({
      title: 'Set a new password',
      text: `For the account ${email}. All sessions of this account end.`,
      password: 'New password, 8 to 128 characters',
      button: 'Set the password',
      tooShort: 'The password must have 8 to 128 characters.',
    }),
    passwordSet: { title: 'Password set', text: 'Log in with your new password.' },
    askAddress: (email) => ({
      title: 'Confirm this address',
      text: `The account will use the address ${email}. All its sessions end.`,
      button: 'Confirm',
    }),
    addressSet: (email) => ({
      title: 'Confirmed',
      text: `The account now uses the address ${email}. Log in with it.`,
    }),
    signIn: 'Sign in',
  },
  de: {
    invalid: {
      title: 'Dieser Link ist ungültig',
      text:
        'Der Link ist älter als 30 Minuten, wurde schon benutzt oder ist unvollständig. Fordern ' +
        'Sie einen neuen an.',
    },
    askPassword: (email) => ({
      title: 'Neues Passwort festlegen',
      text: `Für das Konto ${email}. Alle Sitzungen dieses Kontos enden.`,
      password: 'Neues Passwort, 8 bis 128 Zeichen',
      button: 'Passwort festlegen',
      tooShort: 'Das Passwort muss 8 bis 128 Zeichen haben.',
    }),
    passwordSet: {
      title: 'Das Passwort ist festgelegt',
      text: 'Melden Sie sich mit dem neuen Passwort an.',
    },
    askAddress: (email) => ({
      title: 'Diese Adresse bestätigen',
      text: `Das Konto verwendet künftig die Adresse ${email}. Alle seine Sitzungen enden.`,
      button: 'Bestätigen',
    }),
    addressSet: (email) => ({
      title: 'Bestätigt',
      text: `Das Konto verwendet ab jetzt die Adresse ${email}. Melden Sie sich damit an.`,
    }),
    signIn: 'Anmelden',
  },
};
