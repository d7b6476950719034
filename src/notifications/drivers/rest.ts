import type { RestConfig } from '../settings.ts';
import type { Driver } from '../channels/channel.ts';
import { post } from './post.ts';

/** Sends SMS through a provider that takes a form with `To`, `From` and `Body`, as Twilio's Messages resource does. */
export function restDriver(
  { url, username, from, timeoutMs }: RestConfig,
  password: string,
  clock: () => number,
): Driver {
  const credentials = Buffer.from(`${username}:${password}`).toString('base64');
  const headers = {
    Authorization: `Basic ${credentials}`,
    'Content-Type': 'application/x-www-form-urlencoded',
  };
  return {
    name: 'rest',
    send: ({ recipient, body: text }) => {
      const body = new URLSearchParams({ To: recipient, From: from, Body: text }).toString();
      return post(url, { headers, body, timeoutMs, clock, secrets: [password, credentials] });
    },
    close: async () => {},
  };
}
