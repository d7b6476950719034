import { doneBy } from '../audit/entry.ts';
import { DomainError } from '../errors.ts';
import { createRefuseSlowly } from '../http/refuse-slowly.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleLogin, MessageResponse } from '../http/schema.ts';
import { askForEmailChange } from './change-email.ts';
import type { AccountsDeps } from './deps.ts';
import { askForReset, resetPassword } from './forgotten-password.ts';
import { EmailChange, ForgottenPassword, PasswordReset } from './schema.ts';

/** Beyond the specification: the way back into an account, and another address for it. */
export function recoveryRoutes(deps: AccountsDeps): Route[] {
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  return [
    defineRoute({
      name: 'forgetPassword',
      method: 'post',
      path: '/v2/accounts/password/forgotten',
      summary: 'Ask for a link to set a new password',
      description:
        'The answer is the same whether there is such an account or not. The link is good for 30 minutes, ' +
        'and once. 503: this service sends no mail.',
      tag: 'Accounts',
      auth: 'none',
      errors: [429],
      body: ForgottenPassword,
      example: { email: exampleLogin.email },
      response: MessageResponse,
      handler: async ({ body: { email }, request }) => {
        const { address, receivedTs } = request;
        await refuseSlowly(() => askForReset(deps, { email, address }, receivedTs), request);
        const message = 'If there is an account with this address, a link was sent there.';
        return { timestamp: request.now(), message };
      },
    }),
    defineRoute({
      name: 'resetPassword',
      method: 'post',
      path: '/v2/accounts/password/reset',
      summary: 'Set a new password by a link',
      description: 'Ends every session of the account, and every other link.',
      tag: 'Accounts',
      auth: 'none',
      errors: [429],
      body: PasswordReset,
      example: { token: 'what the link has behind ?token=', password: exampleLogin.password },
      response: MessageResponse,
      handler: async ({ body, request }) => {
        const { address, receivedTs: ts } = request;
        const by = { actor: { by: 'nobody', sessionId: null, address }, ts } as const;
        const reset = () => resetPassword(deps, { ...body, address }, by);
        if (!(await refuseSlowly(reset, request))) throw invalidLink();
        return { timestamp: request.now(), message: 'The password was set; log in with it.' };
      },
    }),
    defineRoute({
      name: 'changeEmail',
      method: 'put',
      path: '/v2/accounts/email',
      summary: 'Change the e-mail address',
      description:
        'A link is sent to the new address; once it is confirmed there, the address changes, every session ' +
        'ends and the old address is told. 503: this service sends no mail.',
      tag: 'Accounts',
      auth: 'account',
      errors: [403],
      body: EmailChange,
      example: { password: exampleLogin.password, email: 'ada.lovelace@example.org' },
      response: MessageResponse,
      handler: async ({ account, body, request }) => {
        const { accountId } = account;
        await askForEmailChange(deps, { accountId, ...body }, doneBy(account, request));
        const message = 'A link to confirm the new address was sent there.';
        return { timestamp: request.now(), message };
      },
    }),
  ];
}

function invalidLink(): DomainError {
  return new DomainError('invalid-input', 'The link is not valid.', {
    problems: [{ path: '/token', message: 'is too old, was used, or is not complete' }],
  });
}
