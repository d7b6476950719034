// A sensor device in Node: npm install mqtt
import { setTimeout as sleep } from 'node:timers/promises';
import { connectAsync } from 'mqtt';

const {
  DEVICE_UUID: uuid,
  DEVICE_TOKEN,
  DEVICE_URL = 'mqtt://127.0.0.1:1883', // or mqtts://…, ws://…/mqtt, wss://…/mqtt
} = process.env;
const up = `devices/${uuid}/up`;
const down = `devices/${uuid}/down`;

const client = await connectAsync(DEVICE_URL, {
  protocolVersion: 4,
  clientId: 'sensor',
  username: uuid,
  password: DEVICE_TOKEN,
});

client.on('message', (topic, bytes) => {
  const payload = JSON.parse(bytes.toString());
  console.log(topic.slice(down.length + 1), payload);
  if (topic !== `${down}/profile`) return;
  const answer = { pId: payload.pId, state: 'current', engine: 'service' };
  client.publish(`${up}/profile`, JSON.stringify(answer), { qos: 1 });
});
// Subscribing is how a device asks: its profile, configuration and state follow.
await client.subscribeAsync(`${down}/#`, { qos: 1 });

for (let count = 0; count < 3; count++) {
  const measurement = { sId: '0x10', val: 20 + count, ts: Date.now() };
  // Resolves when the service has acknowledged it: from then on it is stored.
  await client.publishAsync(`${up}/measurements`, JSON.stringify(measurement), { qos: 1 });
  console.log('stored:', measurement);
  await sleep(1_000);
}
await client.endAsync();
