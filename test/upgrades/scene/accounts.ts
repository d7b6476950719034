import { call } from '../ask.ts';
import type { AccountKeys } from '../fixture.ts';

type Pair = { data: { token: string; refreshToken: string } };

/**
 * Registers an account with a name and push tokens, and logs in both ways. `newPassword`: changes the password first,
 * which ends the earlier sessions.
 */
export async function openAccount(
  url: string,
  { email, newPassword, push }: { email: string; newPassword?: string; push: string[] },
): Promise<AccountKeys> {
  const first = { email, password: `first password of ${email}` };
  const post = <T>(path: string, body: unknown) => call<T>(url, path, { method: 'POST', body });
  const { accountAuthToken } = await post<{ accountAuthToken: string }>('/v2/accounts', first);
  const change = (path: string, body: unknown) =>
    call(url, path, { method: 'PUT', token: accountAuthToken, body });
  await change('/v2/accounts', { name: `Of ${email}`, apn: push.map((token) => ({ token })) });
  const credentials = { email, password: newPassword ?? first.password };
  if (newPassword) {
    await change('/v2/accounts/password', { oldPassword: first.password, newPassword });
  }
  const login = await post<{ accountAuthToken: string }>('/v2/accounts/login', credentials);
  const { data } = await post<Pair>('/v1/auth/login', credentials);
  const refreshed = await call<Pair>(url, '/v1/auth/refresh', {
    method: 'POST',
    token: data.token,
    body: { refreshToken: data.refreshToken },
  });
  return {
    ...credentials,
    ...(newPassword && { earlierPassword: first.password }),
    token: login.accountAuthToken,
    pair: refreshed.data,
  };
}

/** Stores purposes. The last one is changed once, and a further one is removed. */
export async function storePurposes(url: string, token: string, purposes: object[]) {
  const uuids: string[] = [];
  const post = (body: object) =>
    call<{ purposeUuid: string }>(url, '/v2/purposes', { method: 'POST', token, body });
  for (const purpose of purposes) uuids.push((await post(purpose)).purposeUuid);
  const last = uuids.at(-1) ?? '';
  const changed = { ...purposes.at(-1), name: 'Changed since' };
  await call(url, `/v2/purposes/${last}`, { method: 'PUT', token, body: changed });
  const gone = (await post({ ...purposes.at(-1) })).purposeUuid;
  await call(url, `/v2/purposes/${gone}`, { method: 'DELETE', token });
  return uuids;
}
