import { randomUUID } from 'node:crypto';
import type { MailServer } from '../../support/smtp.ts';
import { call, until } from '../ask.ts';
import { isLetIn } from '../device.ts';
import type { AccountKeys, DeviceKeys, Made } from '../fixture.ts';
import type { Site } from './device.ts';
import { plain } from './purposes.ts';

/** Creates credentials of every kind: API keys, push tokens of sessions, a console session and a stream's ticket. */
export async function openDoors(url: string, account: AccountKeys): Promise<AccountKeys> {
  const { email, password, token } = account;
  const post = <T>(path: string, body: object) =>
    call<T>(url, path, { method: 'POST', token, body });
  await post('/v2/accounts/keys', { name: 'reads all', scopes: ['devices:read', 'data:read'] });
  const { key } = await post<{ key: string }>('/v2/accounts/keys', {
    name: 'of the cellar',
    scopes: ['devices:read', 'purposes:read', 'data:read', 'alarms:read'],
    labels: ['cellar'],
  });
  await post('/v2/accounts/push-tokens', { token: 'cc03', name: 'Ann’s telephone' });
  await post('/v2/streams', { kinds: ['events', 'measurements'] });
  const response = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Sensorium-Console': '1' },
    body: JSON.stringify({ email, password }),
  });
  const cookie = response.headers
    .getSetCookie()
    .map((one) => one.split(';', 1)[0] ?? '')
    .find((one) => !one.endsWith('='));
  if (cookie === undefined) throw new Error(`No cookie of the console: ${response.status}.`);
  return { ...account, key, cookie };
}

/** Requests a password reset and an e-mail change, which remains unconfirmed. */
export async function askForLinks(url: string, mail: MailServer, account: AccountKeys) {
  const { email, password, token } = account;
  await call(url, '/v2/accounts/password/forgotten', { method: 'POST', body: { email } });
  await mail.mailTo(email);
  const another = `new.${email}`;
  await call(url, '/v2/accounts/email', {
    method: 'PUT',
    token,
    body: { email: another, password },
  });
  await mail.mailTo(another);
}

/** Creates by requests that can be sent again: a purpose, a command, and a job with a device that nobody has. */
export async function makeOnce({ url, token }: Site, account: string, devices: DeviceKeys[]) {
  const made: Made[] = [];
  const make = async <T extends object>(path: string, body: object): Promise<T> => {
    const key = randomUUID();
    const answer = await call<T>(url, path, { method: 'POST', token, body, key });
    made.push({ account, path, body, key, answer });
    return answer;
  };
  await make('/v2/purposes', plain(10, 'Made once'));
  await make(`/v2/devices/${devices[0]?.uuid}/commands`, { name: 'restart' });
  const uuids = [...devices.map(({ uuid }) => uuid), randomUUID()];
  const { jobId } = await make<{ jobId: string }>('/v2/devices/actions', {
    action: 'label',
    labels: ['cellar'],
    deviceAuthUuids: uuids,
  });
  await until('the job', async () => {
    const { state } = await call<{ state: string }>(url, `/v2/jobs/${jobId}`, { token });
    return state === 'done' ? true : null;
  });
  return made;
}

/** Tries wrong tokens, for an existing device and for one that was removed. */
export async function beRefused(
  { url, mqttPort, token }: Site,
  device: DeviceKeys,
  gone: DeviceKeys,
) {
  for (const { uuid } of [device, gone]) {
    if (await isLetIn(mqttPort, uuid, 'y'.repeat(32))) throw new Error('Let in.');
  }
  for (const path of [
    `/v2/devices/${device.uuid}/refused-logins`,
    '/v2/devices/removed/refused-logins',
  ])
    await until(path, async () => {
      const answer = await call(url, path, { token });
      return Object.values(answer).some((list) => Array.isArray(list) && list.length > 0)
        ? true
        : null;
    });
}
