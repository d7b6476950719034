import { startMosquitto } from '../../test/support/mosquitto.ts';
import { installProfile, registerAccount, registerDevices } from '../api.ts';
import type { BenchContext } from '../bench-context.ts';
import { withClient } from '../database.ts';
import { anonymousSpecs, headStartMs, loadOnce, specsOf, type LoadOptions } from '../fleets.ts';
import { createMeter, type Meter } from '../meter.ts';
import { startContender, type Program } from '../program.ts';
import type { Contender } from '../rounds.ts';
import { startBenchService } from '../service.ts';

export type Shape = { devices: number; inFlight: number; samplesPerMessage: number };

/** Copied rows have series numbers from here on, which the service does not use. */
export const firstCopiedSeries = 1_000_000_000;

type Load = Omit<LoadOptions, 'port' | 'devices' | 'payload' | 'watched'>;

function loadOf({ options }: BenchContext, { inFlight, samplesPerMessage }: Shape): Load {
  const { seconds, warmupSeconds } = options;
  return { inFlight, samplesPerMessage, seconds, warmupSeconds };
}

export type ServiceContender = Contender & { databaseUrl: string; meter: Meter };

/** The service on a database of its own, with registered devices, half of them with a profile. */
export async function serviceContender(
  context: BenchContext,
  database: string,
  shape: Shape,
): Promise<ServiceContender> {
  const databaseUrl = await context.database.create(database);
  const service = await startBenchService({ databaseUrl, redisUrl: context.redisUrl });
  context.defer(() => service.stop());
  const account = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, account.token, shape.devices);
  await installProfile(
    service.baseUrl,
    account.token,
    devices.filter((_, index) => index % 2 === 0),
  );
  const meter = createMeter(shape.devices, shape.samplesPerMessage, Date.now() - headStartMs);
  const watched = { server: [service.pid], database: context.database.pid };
  return {
    name: 'Sensorium',
    databaseUrl,
    meter,
    turn: async () => {
      const metrics = await loadOnce({
        ...loadOf(context, shape),
        port: service.mqttPort,
        devices: specsOf(devices),
        payload: meter.payload,
        watched,
      });
      await expectStored(databaseUrl, meter);
      return metrics;
    },
  };
}

/** Everything that was sent has been acknowledged, so exactly that must be stored. */
async function expectStored(databaseUrl: string, meter: Meter): Promise<void> {
  const sent = meter.given().reduce((sum, count) => sum + count, 0);
  const stored = await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ count: string }>(
      'select count(*) from measurement where series_id < $1',
      [firstCopiedSeries],
    );
    return Number(rows[0]?.count);
  });
  if (stored !== sent) throw new Error(`${sent} measurements acknowledged, ${stored} stored.`);
}

export async function aedesContender(context: BenchContext, shape: Shape): Promise<Contender> {
  const broker = await startContender('aedes.ts');
  context.defer(() => broker.stop());
  const meter = createMeter(shape.devices, shape.samplesPerMessage, Date.now() - headStartMs);
  return {
    name: 'bare aedes',
    turn: () =>
      loadOnce({
        ...loadOf(context, shape),
        port: Number(broker.ready['port']),
        devices: anonymousSpecs(shape.devices),
        payload: meter.payload,
        watched: { server: [broker.pid], database: context.database.pid },
      }),
  };
}

/** Broker and subscriber are new in each turn, so that one turn's queue does not burden the next. */
export async function mosquittoContender(
  context: BenchContext,
  database: string,
  mode: 'batch' | 'row',
  shape: Shape,
): Promise<Contender> {
  const databaseUrl = await context.database.create(database);
  const meter = createMeter(shape.devices, shape.samplesPerMessage, Date.now() - headStartMs);
  const devices = Array.from({ length: shape.devices }, (_, index) => ({
    clientId: `device-${index}`,
    topic: `devices/${index}/up/measurements`,
  }));
  return {
    name: mode === 'batch' ? 'Mosquitto, batches' : 'Mosquitto, row by row',
    turn: async () => {
      const broker = await startMosquitto([
        'allow_anonymous true',
        'max_queued_messages 0',
        'max_inflight_messages 1000',
        'set_tcp_nodelay true',
      ]);
      const subscriber = await startContender('subscriber.ts', [broker.url, databaseUrl, mode]);
      try {
        return await loadOnce({
          ...loadOf(context, shape),
          port: broker.port,
          devices,
          payload: meter.payload,
          watched: { server: [broker.pid(), subscriber.pid], database: context.database.pid },
          counts: async () => ({ rowsPerSecond: await askStored(subscriber) }),
        });
      } finally {
        // Does not wait for its queue.
        await subscriber.stop();
        await broker.remove();
      }
    },
  };
}

async function askStored(subscriber: Program): Promise<number> {
  return (JSON.parse(await subscriber.ask('?')) as { stored: number }).stored;
}
