// What a phone app does: log in, list the devices with their newest values and the open alarms, then follow values
// and what happens. It needs fetch and nothing else. With Node 24:
//
//   URL=http://127.0.0.1:8080 EMAIL=ada@example.org PASSWORD=… node examples/apps/phone.ts
//
// With ACKNOWLEDGE=yes it acknowledges each alarm that opens, as a person would by a button.
import { followStream, type Message } from './follow-stream.ts';

type Device = { uuid: string; name: string; connected: boolean };
type Newest = { deviceAuthUuid: string; sId: string; val: unknown; ts: number };
type Alarm = { alarmId: number; deviceName: string; eventName: string; state: string };
type Happened = { deviceAuthUuid: string; type?: string; change?: string; alarm?: Alarm };

const { URL: base = 'http://127.0.0.1:8080', EMAIL = '', PASSWORD = '', ACKNOWLEDGE } = process.env;
let token = '';

/** A JSON request; throws what the service says of a refusal. */
async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (token !== '') headers['Authorization'] = `Bearer ${token}`;
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  const json = (await answer.json()) as { detail?: string };
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${json.detail ?? ''}`);
  return json as T;
}

/** The token is good for 30 days from its last use: an app keeps it, and asks for the password when it gets 401. */
async function logIn(): Promise<void> {
  const body = { email: EMAIL, password: PASSWORD };
  const { accountAuthToken } = await call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    body,
  );
  token = accountAuthToken;
}

const names = new Map<string, string>();

async function showAll(): Promise<void> {
  const [{ devices }, { latest }, { alarms }] = await Promise.all([
    call<{ devices: Device[] }>('GET', '/v2/devices'),
    call<{ latest: Newest[] }>('GET', '/v2/measurements/latest'),
    call<{ alarms: Alarm[] }>('GET', '/v2/alarms?state=open'),
  ]);
  for (const { uuid, name, connected } of devices) {
    names.set(uuid, name);
    console.log(`${name}: ${connected ? 'online' : 'offline'}`);
    for (const { deviceAuthUuid, sId, val, ts } of latest)
      if (deviceAuthUuid === uuid)
        console.log(`  ${sId} ${JSON.stringify(val)} at ${new Date(ts).toISOString()}`);
  }
  for (const { eventName, deviceName } of alarms) console.log(`ALARM ${eventName}, ${deviceName}`);
  console.log('Following.');
}

/** An event, or, under the name `alarm`, what changed of an alarm. A message may come twice. */
async function show({ name, data }: Message): Promise<void> {
  const { deviceAuthUuid, type, change, alarm } = JSON.parse(data) as Happened;
  const device = names.get(deviceAuthUuid) ?? deviceAuthUuid;
  if (name !== 'alarm') return console.log(`${device}: ${type} event`);
  console.log(`${device}: alarm ${change}, ${alarm?.eventName}`);
  if (change === 'opened' && alarm && ACKNOWLEDGE !== undefined)
    await call('POST', `/v2/alarms/${alarm.alarmId}/acknowledge`);
}

/** What devices measure, once it is stored. */
async function showValue({ name, data }: Message): Promise<void> {
  if (name !== 'measurement') return;
  const { deviceAuthUuid, sId, val } = JSON.parse(data) as Newest;
  console.log(`${names.get(deviceAuthUuid) ?? deviceAuthUuid}: ${sId} ${JSON.stringify(val)}`);
}

await logIn();
const common = {
  headers: () => ({ Authorization: `Bearer ${token}` }),
  onRefused: logIn,
};
await Promise.all([
  followStream({
    ...common,
    url: `${base}/v2/events/stream`,
    // Once the stream is open: what happens from here on is in it, what was before is in the lists.
    onOpen: showAll,
    onMessage: show,
  }),
  followStream({
    ...common,
    // Of each sense one value a second at most, the newest: a screen needs no more.
    url: `${base}/v2/measurements/stream?maxHz=1`,
    onOpen: async () => console.log('Values are live.'),
    onMessage: showValue,
  }),
]);
