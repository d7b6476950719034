import { type Answer, call } from './request.ts';
import type {
  ApiKey,
  AuditList,
  Contacts,
  ContactsUpdate,
  ListedSession,
  MadeKey,
  NewKey,
  SessionView,
  TrialAnswer,
  UsageList,
} from './types.ts';

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
 * Creates an account. It ends the session that registering starts at once: this page signs in by cookie, and stores no
 * token.
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

type AccountChange = { name?: string; timeZone?: string };

export const changeAccount = (body: AccountChange) => call('PUT', '/v2/accounts', { body });

/** Apps add their tokens again when they are opened. */
export const removePushTokens = () => call('DELETE', '/v2/accounts/push-tokens');

export const changePassword = (body: { oldPassword: string; newPassword: string }) =>
  call('PUT', '/v2/accounts/password', { body });

export const changeEmail = (body: { password: string; email: string }) =>
  call('PUT', '/v2/accounts/email', { body });

export const deleteAccount = () => call('DELETE', '/v2/accounts');

export const listSessions = async (signal?: AbortSignal): Promise<ListedSession[]> =>
  (await call<{ sessions: ListedSession[] }>('GET', '/v2/accounts/sessions', { signal })).body
    .sessions;

export const endOneSession = (id: string) => call('DELETE', `/v2/accounts/sessions/${id}`);

export const getContacts = async (signal?: AbortSignal): Promise<Contacts> =>
  (await call<Contacts>('GET', '/v2/accounts/contacts', { signal })).body;

export const replaceContacts = async (body: ContactsUpdate): Promise<Contacts> =>
  (await call<Contacts>('PUT', '/v2/accounts/contacts', { body })).body;

export const tryContacts = async (): Promise<TrialAnswer> =>
  (await call<TrialAnswer>('POST', '/v2/accounts/contacts/test')).body;

export const listKeys = async (signal?: AbortSignal): Promise<ApiKey[]> =>
  (await call<{ keys: ApiKey[] }>('GET', '/v2/accounts/keys', { signal })).body.keys;

export const makeKey = async (body: NewKey): Promise<MadeKey> =>
  (await call<MadeKey>('POST', '/v2/accounts/keys', { body })).body;

export const revokeKey = (keyId: string) => call('DELETE', `/v2/accounts/keys/${keyId}`);

export const getUsage = async (signal?: AbortSignal): Promise<UsageList['usage']> =>
  (await call<UsageList>('GET', '/v2/accounts/usage', { signal })).body.usage;

export const listAudit = (
  { kinds, cursor }: { kinds: string; cursor: string },
  signal?: AbortSignal,
): Promise<Answer<AuditList>> =>
  call('GET', '/v2/accounts/audit', { query: { kinds, cursor, limit: 50 }, signal });
