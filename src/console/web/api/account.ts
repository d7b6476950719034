import { call, type Answer } from './request.ts';
import type {
  ApiKey,
  AuditList,
  Contacts,
  ContactsUpdate,
  ListedSession,
  MadeKey,
  NewKey,
  TrialAnswer,
  UsageList,
} from './types.ts';

export type AccountChange = { name?: string; timeZone?: string };

export const changeAccount = (body: AccountChange) => call('PUT', '/v2/accounts', { body });

/** Apps add theirs again when they are opened. */
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
