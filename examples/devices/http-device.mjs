// A sensor device in Node over HTTP, with nothing but Node (fetch keeps its connection).
import { setTimeout as sleep } from 'node:timers/promises';

const {
  DEVICE_UUID: uuid,
  DEVICE_TOKEN,
  DEVICE_HTTP_URL = 'http://127.0.0.1:8080', // or https://… behind a proxy
} = process.env;
/** @type {{ sId: string, val: number, ts: number }[]} */
const unsent = [];

/**
 * The answer; null where it is to be sent again later.
 * @typedef {{ stored: number, repeated: number, rejected: { path: string, message: string }[] }} Answer
 * @param {string} topic
 * @param {unknown} payload
 * @returns {Promise<Answer | null>}
 */
async function post(topic, payload) {
  const request = {
    method: 'POST',
    headers: { Authorization: `Bearer ${DEVICE_TOKEN}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(payload),
    signal: AbortSignal.timeout(30_000),
  };
  const response = await fetch(`${DEVICE_HTTP_URL}/devices/${uuid}/up/${topic}`, request).catch(
    (error) => console.log('not sent:', error.message),
  );
  if (!response) return null;
  const answer = /** @type {Answer & { detail: string }} */ (await response.json());
  if (response.status === 200) return answer;
  if (response.status !== 429 && response.status !== 503) throw new Error(answer.detail);
  await sleep(Number(response.headers.get('retry-after')) * 1_000);
  return null;
}

/** Sends what was kept, in its order; the same again changes nothing, as each value has its ts. */
async function sendUnsent() {
  while (unsent.length > 0) {
    const batch = unsent.slice(0, 500);
    const answer = await post('measurements', batch);
    if (!answer) return;
    unsent.splice(0, batch.length);
    console.log('stored:', answer.stored, 'repeated:', answer.repeated);
    for (const { path, message } of answer.rejected) console.log('rejected:', path, message);
  }
}

for (let count = 0; count < 3; count++) {
  unsent.push({ sId: '0x10', val: 20 + count, ts: Date.now() });
  await sendUnsent();
  await sleep(1_000);
}
