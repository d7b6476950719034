// What a phone app does: log in, list the devices with their newest values and the open alarms, then follow values,
// events and alarms. It needs only fetch. With Node 20 or later:
//
//   URL=http://127.0.0.1:8080 EMAIL=ada@example.org PASSWORD=… node examples/apps/phone.mjs
//
// With ACKNOWLEDGE=yes it acknowledges each alarm that opens, as a person would by a button.
import { followStream } from './follow-stream.mjs';

/**
 * @typedef {{ uuid: string, name: string, connected: boolean }} Device
 * @typedef {{ deviceAuthUuid: string, sId: string, val: unknown, ts: number }} Newest
 * @typedef {{ alarmId: number, deviceName: string, eventName: string, state: string }} Alarm
 * @typedef {{ deviceAuthUuid: string, type?: string, change?: string, alarm?: Alarm }} Happened
 * @typedef {import('./follow-stream.mjs').Message} Message
 */

const { URL: base = 'http://127.0.0.1:8080', EMAIL = '', PASSWORD = '', ACKNOWLEDGE } = process.env;
let token = '';

/**
 * Sends a JSON request; returns the answer's body, and the address of the next page if there is one. Throws the
 * service's reason if it refuses.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 */
async function call(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { 'Content-Type': 'application/json' };
  if (token !== '') headers['Authorization'] = `Bearer ${token}`;
  const request = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
  const answer = await fetch(base + path, request);
  /** @type {any} */
  const json = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${json.detail ?? ''}`);
  const [, next = ''] = /<([^>]+)>; rel="next"/.exec(answer.headers.get('Link') ?? '') ?? [];
  return { json, next };
}

/**
 * All pages of a list.
 * @param {string} path
 * @param {string} member
 */
async function listAll(path, member) {
  const all = [];
  for (let page = path; page !== '';) {
    const { json, next } = await call('GET', page);
    all.push(...json[member]);
    page = next;
  }
  return all;
}

/** The token works for 30 days after its last use: an app keeps it, and asks for the password when it gets 401. */
async function logIn() {
  const body = { email: EMAIL, password: PASSWORD };
  token = (await call('POST', '/v2/accounts/login', body)).json.accountAuthToken;
}

/** @type {Map<string, string>} */
const names = new Map();

async function showAll() {
  /** @type {[Device[], Newest[], Alarm[]]} */
  const [devices, latest, alarms] = await Promise.all([
    listAll('/v2/devices', 'devices'),
    listAll('/v2/measurements/latest', 'latest'),
    listAll('/v2/alarms?state=open', 'alarms'),
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

/**
 * An event or, with the name `alarm`, a change of an alarm. A message may come twice.
 * @param {Message} message
 */
async function show({ name, data }) {
  /** @type {Happened} */
  const { deviceAuthUuid, type, change, alarm } = JSON.parse(data);
  const device = names.get(deviceAuthUuid) ?? deviceAuthUuid;
  if (name !== 'alarm') return console.log(`${device}: ${type} event`);
  console.log(`${device}: alarm ${change}, ${alarm?.eventName}`);
  if (change === 'opened' && alarm && ACKNOWLEDGE !== undefined)
    await call('POST', `/v2/alarms/${alarm.alarmId}/acknowledge`);
}

/**
 * A measurement, once it is stored.
 * @param {Message} message
 */
async function showValue({ name, data }) {
  if (name !== 'measurement') return;
  /** @type {Newest} */
  const { deviceAuthUuid, sId, val } = JSON.parse(data);
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
    // Read the lists once the stream is open: the stream has everything from here on, the lists have everything before.
    onOpen: showAll,
    onMessage: show,
  }),
  followStream({
    ...common,
    // At most one value a second of each sense, the newest: a screen needs no more.
    url: `${base}/v2/measurements/stream?maxHz=1`,
    onOpen: async () => console.log('Values are live.'),
    onMessage: showValue,
  }),
]);
