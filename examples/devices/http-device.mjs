// A sensor device in Node over HTTP. It needs nothing but Node (fetch keeps its connection).
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Unsent } from './unsent.mjs';

const {
  DEVICE_UUID: uuid,
  DEVICE_TOKEN,
  DEVICE_HTTP_URL = 'http://127.0.0.1:8080', // or https://… behind a proxy
  UNSENT_FILE = `unsent-${uuid}.ndjson`,
  TOKEN_FILE = `token-${uuid}.txt`, // a newer token than DEVICE_TOKEN, from the service
  INTERVAL = '10',
} = process.env;
const intervalMs = Number(INTERVAL) * 1_000;
const unsent = new Unsent(UNSENT_FILE, 1_000_000);

let token = existsSync(TOKEN_FILE) ? readFileSync(TOKEN_FILE, 'utf8') : DEVICE_TOKEN;
let failures = 0;
let after = '';

/**
 * The answer to a POST, or to a GET without a body; null if the device has to ask again later.
 * @typedef {{ topic: string, payload: { pId?: string, deviceAuthToken?: string } }} Message
 * @typedef {{ stored: number, rejected?: object[], detail?: string, messages?: Message[], after: string }} Answer
 * @param {string} path
 * @param {string} [body]
 * @returns {Promise<Answer | null>}
 */
async function ask(path, body) {
  const request = {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(60_000),
    ...(body === undefined ? {} : { method: 'POST', body }),
  };
  try {
    const response = await fetch(`${DEVICE_HTTP_URL}/devices/${uuid}/${path}`, request);
    const answer = /** @type {Answer} */ (await response.json());
    failures = 0;
    if ([401, 404].includes(response.status)) throw new Refused(answer.detail);
    if (response.status !== 429 && response.status < 500) return answer;
    console.log('told to wait:', response.status);
    await sleep(Number(response.headers.get('retry-after') ?? 10) * 1_000);
  } catch (error) {
    if (error instanceof Refused) throw error;
    console.log('no answer:', error);
    // Wait longer after each failure, and a random time, so that not all devices return at once.
    await sleep(Math.min(intervalMs * 2 ** ++failures, 300_000) * Math.random());
  }
  return null;
}

class Refused extends Error {}

/** Replace this with your sensor. @param {number} count */
const readSensor = (count) => 20 + (count % 10);

for (let count = 0; ; count++) {
  const val = readSensor(count);
  // Keep it first, with its ts: the service recognises it if it is sent again. JSON has no NaN, which a failing sensor
  // gives.
  if (Number.isFinite(val)) unsent.add({ sId: '0x10', val, ts: Date.now() });
  else console.log('no value:', val);
  const nextMs = Date.now() + intervalMs;
  if (await sendUnsent()) await listenUntil(nextMs);
  await sleep(Math.max(0, nextMs - Date.now()));
}

/** Stores a new token before it uses it: the first request with it ends the old one. @param {string} fresh */
function takeToken(fresh) {
  writeFileSync(`${TOKEN_FILE}.new`, fresh, { mode: 0o600 });
  renameSync(`${TOKEN_FILE}.new`, TOKEN_FILE);
  token = fresh;
  console.log('a new token');
}

/** Sends kept values in order. It drops them when the service has answered that they are stored. */
async function sendUnsent() {
  for (let batch; (batch = unsent.oldest(500));) {
    const answer = await ask('up/measurements', batch);
    if (!answer) {
      console.log('kept for later');
      return false;
    }
    unsent.forget();
    // A 400 has `detail`: the service cannot read any of it, however often it is sent.
    console.log('stored:', answer.stored, answer.rejected ?? answer.detail);
  }
  return true;
}

/** Takes the service's messages for the device, until the next value is due. @param {number} untilMs */
async function listenUntil(untilMs) {
  for (let wait = -1; wait !== 0;) {
    wait = Math.min(25, Math.max(0, Math.round((untilMs - Date.now()) / 1_000)));
    const query = `wait=${wait}&topics=profile,display,state,token&after=${encodeURIComponent(after)}`;
    const answer = await ask(`down?${query}`);
    if (!answer?.messages) return;
    for (const { topic, payload } of answer.messages) {
      if (topic === 'token' && payload.deviceAuthToken) {
        takeToken(payload.deviceAuthToken);
        continue;
      }
      console.log(topic, payload);
      if (topic !== 'profile') continue;
      // This device accepts every profile; the service evaluates it.
      const taken = JSON.stringify({ pId: payload.pId, state: 'current', engine: 'service' });
      if (!(await ask('up/profile', taken))) return;
    }
    // The next poll returns it, which acknowledges the messages.
    after = answer.after;
  }
}
