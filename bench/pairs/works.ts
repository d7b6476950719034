import { installProfile, registerAccount, registerDevices } from '../api.ts';
import { createFleet } from '../client/fleet.ts';
import { withClient } from '../database.ts';
import { headStartMs, specsOf, takeTurn } from '../fleets.ts';
import { connections, requestOnce } from '../http-load.ts';
import { createMeter } from '../meter.ts';
import type { Metrics } from '../rounds.ts';
import type { BenchService } from '../service.ts';
import type { Side } from './alternate.ts';
import { openUplink, uplinkConnections } from './open-uplink.ts';

/** A newly started service on a database of its own, and what is needed to measure it. */
type Place = {
  service: BenchService;
  databaseUrl: string;
  /** The postmaster, which also serves the other side's database. */
  databasePid: number;
  devices: number;
  /** Of MQTT; absent: 3.1.1. */
  version?: 5;
  defer: (release: () => Promise<unknown>) => void;
};

/** `bound`: what the interval of after / before must reach on one side; null: only reported. */
export type Measure = {
  metric: string;
  title: string;
  bound: { reaches: 'below' | 'above'; ratio: number } | null;
};

export type Work = {
  name: string;
  title: string;
  measures: Measure[];
  open: (place: Place) => Promise<Side>;
};

/** All measures by which two versions of the service are compared. */
export const works: Work[] = [
  messages('messages-1-plain', 1, false),
  messages('messages-1-profile', 1, true),
  messages('messages-50-plain', 50, false),
  messages('messages-50-profile', 50, true),
  {
    name: 'requests',
    title: `GET /v2/devices/{uuid}/configuration, authenticated, ${connections} connections`,
    measures: [...costs('a request'), throughput('requestsPerSecond', 'requests/s')],
    open: openRequests,
  },
  {
    name: 'uplink',
    title: `POST /devices/{uuid}/up/measurements, a value each, ${uplinkConnections} connections`,
    measures: [...costs('a request'), throughput('answersPerSecond', 'answers/s')],
    open: ({ service, databasePid }) => openUplink(service, databasePid, withCosts),
  },
];

function messages(name: string, samplesPerMessage: number, withProfile: boolean): Work {
  const samples = samplesPerMessage === 1 ? '1 measurement' : `${samplesPerMessage} measurements`;
  return {
    name,
    title: `${samples} a message, ${withProfile ? 'half of the devices with a profile' : 'no profile'}`,
    measures: [
      ...costs('a message'),
      throughput('acksPerSecond', 'messages/s'),
      { metric: 'p99Ms', title: 'p99 ms', bound: { reaches: 'below', ratio: 1.15 } },
    ],
    open: (place) => openMessages(place, samplesPerMessage, withProfile),
  };
}

/** In microseconds of processor time. A saving in one of the two must not become a cost in the other. */
function costs(each: string): Measure[] {
  const bound = { reaches: 'below' as const, ratio: 1.05 };
  return [
    { metric: 'serviceMicros', title: `service, µs ${each}`, bound },
    { metric: 'databaseMicros', title: `database, µs ${each}`, bound: null },
    { metric: 'bothMicros', title: `both, µs ${each}`, bound },
  ];
}

function throughput(metric: string, title: string): Measure {
  return { metric, title, bound: { reaches: 'above', ratio: 0.95 } };
}

function withCosts(metrics: Metrics, rate: string): Metrics {
  const { serverCores = NaN, databaseCores = NaN, [rate]: perSecond = NaN } = metrics;
  const micros = (cores: number) => (cores / perSecond) * 1_000_000;
  return {
    ...metrics,
    serviceMicros: micros(serverCores),
    databaseMicros: micros(databaseCores),
    bothMicros: micros(serverCores + databaseCores),
  };
}

async function openMessages(
  { service, databaseUrl, databasePid, devices: count, version, defer }: Place,
  samplesPerMessage: number,
  withProfile: boolean,
): Promise<Side> {
  const { token } = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, token, count);
  const half = devices.filter((_, index) => index % 2 === 0);
  if (withProfile) await installProfile(service.baseUrl, token, half);
  const meter = createMeter(count, samplesPerMessage, Date.now() - headStartMs);
  const fleet = createFleet({
    host: '127.0.0.1',
    port: service.mqttPort,
    devices: specsOf(devices, version),
    payload: meter.payload,
  });
  defer(() => fleet.close());
  await fleet.connect();
  const watched = { server: [service.pid], database: databasePid };
  return {
    async turn(seconds, warmupSeconds) {
      const metrics = await takeTurn(fleet, { samplesPerMessage, seconds, warmupSeconds, watched });
      return withCosts(metrics, 'acksPerSecond');
    },
    async check() {
      const sent = meter.given().reduce((sum, each) => sum + each, 0);
      const stored = await countMeasurements(databaseUrl);
      if (stored !== sent) throw new Error(`${sent} measurements acknowledged, ${stored} stored.`);
    },
  };
}

async function openRequests({ service, databasePid }: Place): Promise<Side> {
  const { token } = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, token, 100);
  const load = {
    baseUrl: service.baseUrl,
    token,
    paths: devices.map(({ uuid }) => `/v2/devices/${uuid}/configuration`),
    watched: { server: [service.pid], database: databasePid },
  };
  return {
    turn: async (seconds, warmupSeconds) =>
      withCosts(await requestOnce({ ...load, seconds, warmupSeconds }), 'requestsPerSecond'),
    check: async () => undefined,
  };
}

/** Finds the tables in whatever schema the version uses. */
async function countMeasurements(databaseUrl: string): Promise<number> {
  return withClient(databaseUrl, async (client) => {
    const { rows: found } = await client.query<{ name: string }>(
      `select format('%I.%I', nspname, relname) as name
         from pg_class
         join pg_namespace n on n.oid = relnamespace
        where relname = 'measurement' and relkind in ('r', 'p') and nspname !~ '^(pg|_timescaledb)_'`,
    );
    const [table] = found;
    if (!table || found.length > 1) throw new Error('Expected one table of measurements.');
    const { rows } = await client.query<{ count: string }>(`select count(*) from ${table.name}`);
    return Number(rows[0]?.count);
  });
}
