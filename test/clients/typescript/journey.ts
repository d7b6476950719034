import { connectAsync } from 'mqtt';
import createClient from 'openapi-fetch';
import type { components, paths } from './api.d.ts';

// From an account to its device's measurements, with the generated client only: node journey.ts http://127.0.0.1:8080

const [, , baseUrl = 'http://127.0.0.1:8080'] = process.argv;
const client = createClient<paths>({ baseUrl });

/** The body of an answer. Throws the service's message for a refusal. */
function need<T>({ data, error }: { data?: T; error?: components['schemas']['Problem'] }): T {
  if (data === undefined) throw new Error(error?.detail ?? 'No answer.');
  return data;
}

const email = `client-${process.pid}@example.org`;
const body = { email, password: 'correct horse battery staple' };
const account = need(await client.POST('/v2/accounts', { body }));
client.use({
  onRequest({ request }) {
    request.headers.set('Authorization', `Bearer ${account.accountAuthToken}`);
  },
});

const configuration: components['schemas']['Configuration'] = {
  device: { name: 'Cold room' },
  module: [{ moduleId: 'climate', senses: [{ sId: '0x10', name: 'Temperature', unit: '°C' }] }],
};
const device = need(await client.POST('/v2/devices', { body: configuration }));
const { deviceAuthUuid } = device;

const purpose: components['schemas']['Purpose'] = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 1,
          name: 'Too warm',
          actions: { alarm: true },
          causes: [{ sId: '0x10', thresholds: { isGt: 8 } }],
        },
      ],
    },
  ],
};
const { purposeUuid } = need(await client.POST('/v2/purposes', { body: purpose }));
const installed = need(
  await client.POST('/v2/devices/profile', {
    body: { deviceAuthUuids: [deviceAuthUuid], purposeUuids: [purposeUuid] },
  }),
);

const mqtt = await connectAsync(`${device.protocol}://${device.host}:${device.port}`, {
  username: deviceAuthUuid,
  password: device.deviceAuthToken,
});
const topic = `devices/${deviceAuthUuid}/up/measurements`;
await mqtt.publishAsync(topic, JSON.stringify({ sId: '0x10', val: 12.5 }), { qos: 1 });
await mqtt.endAsync();

const path = { deviceAuthUuid };
const list = need(await client.GET('/v2/measurements/{deviceAuthUuid}', { params: { path } }));
const query = { devices: deviceAuthUuid, senses: '0x10' };
const latest = need(await client.GET('/v2/measurements/latest', { params: { query } }));
const { alarms } = need(await client.GET('/v2/alarms', { params: { query: { state: 'open' } } }));
const gone = await client.GET('/v2/purposes/{purposeUuid}', {
  params: { path: { purposeUuid: installed.pId } },
});

// On request, the same route answers with CSV as text.
const isJson = typeof list !== 'string' && 'measurements' in list;
const measured = isJson ? list.measurements.map(({ val }) => val) : [];
const [newest] = latest.latest;
const told = alarms.map(({ eventName, deviceName, values }) => ({
  eventName,
  deviceName,
  vals: values.map(({ val }) => val),
}));
const problem = gone.error?.type;
console.log(
  JSON.stringify({ state: installed.state, measured, newest: newest?.val, told, problem }),
);
