// A sensor device in Node over MQTT: npm install mqtt
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'mqtt';
import { Unsent } from './unsent.mjs';

const {
  DEVICE_UUID: uuid,
  DEVICE_TOKEN,
  DEVICE_URL = 'mqtt://127.0.0.1:1883', // or mqtts://…, ws://…/mqtt, wss://…/mqtt
  UNSENT_FILE = `unsent-${uuid}.ndjson`,
  TOKEN_FILE = `token-${uuid}.txt`, // a newer token than DEVICE_TOKEN, from the service
  INTERVAL = '10',
} = process.env;
const up = `devices/${uuid}/up`;
const down = `devices/${uuid}/down`;
const unsent = new Unsent(UNSENT_FILE, 1_000_000);

/** @param {string | undefined} password */
function open(password) {
  const opened = connect(DEVICE_URL, {
    protocolVersion: 4,
    clientId: 'sensor',
    username: uuid,
    password,
    // A fleet that lost its connections at once should not come back at once.
    reconnectPeriod: 1_000 + Math.random() * 4_000,
  });
  opened.on('error', (error) => console.log('no connection:', error.message));
  opened.on('connect', () => {
    console.log('connected');
    // A device asks by subscribing: its profile, configuration and state follow. `#` does not bring a new token.
    opened.subscribe([`${down}/#`, `${down}/token`], { qos: 1 });
  });
  opened.on('message', (topic, bytes) => {
    const payload = JSON.parse(bytes.toString());
    if (topic === `${down}/token`) return takeToken(payload.deviceAuthToken);
    console.log(topic.slice(down.length + 1), payload);
    if (topic !== `${down}/profile`) return;
    // This device accepts every profile; the service evaluates it.
    const answer = { pId: payload.pId, state: 'current', engine: 'service' };
    opened.publish(`${up}/profile`, JSON.stringify(answer), { qos: 1 });
  });
  return opened;
}

let client = open(existsSync(TOKEN_FILE) ? readFileSync(TOKEN_FILE, 'utf8') : DEVICE_TOKEN);

/** Stores a new token before it uses it: the first login with it ends the old one. @param {string} token */
function takeToken(token) {
  writeFileSync(`${TOKEN_FILE}.new`, token, { mode: 0o600 });
  renameSync(`${TOKEN_FILE}.new`, TOKEN_FILE);
  console.log('a new token');
  const before = client;
  // End the connection once everything that was sent is acknowledged.
  before.end(false, {}, () => (client = open(token)));
}

/** Replace this with your sensor. @param {number} count */
const readSensor = (count) => 20 + (count % 10);

let isSending = false;

/** Sends kept values in order. It drops values when their PUBACK has arrived. */
async function sendUnsent() {
  if (isSending) return;
  isSending = true;
  try {
    for (let batch; client.connected && (batch = unsent.oldest(500));) {
      // After a lost connection mqtt.js sends it again by itself. The service stores it once, because it has its ts.
      await client.publishAsync(`${up}/measurements`, batch, { qos: 1 });
      unsent.forget();
      console.log('stored:', batch);
    }
  } catch (error) {
    console.log('kept for later:', error);
  } finally {
    isSending = false;
  }
}

for (let count = 0; ; count++) {
  const val = readSensor(count);
  // Keep it first, with its ts: the service recognises it if it is sent again. JSON has no NaN, which a failing sensor
  // gives.
  if (Number.isFinite(val)) unsent.add({ sId: '0x10', val, ts: Date.now() });
  else console.log('no value:', val);
  if (!client.connected) console.log('kept for later');
  void sendUnsent();
  await sleep(Number(INTERVAL) * 1_000);
}
