import { call } from './request.ts';
import type { SessionView } from './types.ts';

export type SessionAccount = NonNullable<SessionView['account']>;
export type Credentials = { email: string; password: string };

export const getSession = async (): Promise<SessionView> =>
  (await call<SessionView>('GET', '/console/session')).body;

export const signIn = async (body: Credentials): Promise<{ account: SessionAccount }> =>
  (await call<{ account: SessionAccount }>('POST', '/console/session', { body })).body;

export const endSession = () => call('DELETE', '/console/session');

export const updateAccount = (body: { timeZone?: string; language?: 'en' | 'de' }) =>
  call('PUT', '/v2/accounts', { body });

export const forgotPassword = (email: string) =>
  call('POST', '/v2/accounts/password/forgotten', { body: { email } });

/**
 * Makes an account. The session that registering answers with is ended at once: this page signs in by
 * cookie, and keeps no token.
 */
export async function register(body: Credentials): Promise<void> {
  const { accountAuthToken: token } = (
    await call<{ accountAuthToken: string }>('POST', '/v2/accounts', { body })
  ).body;
  const { sessions } = (
    await call<{ sessions: { id: string; current: boolean }[] }>('GET', '/v2/accounts/sessions', {
      token,
    })
  ).body;
  const current = sessions.find((session) => session.current);
  if (current) await call('DELETE', `/v2/accounts/sessions/${current.id}`, { token });
}
