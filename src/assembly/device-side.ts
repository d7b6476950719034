import { startConnector } from '../../connector/broker.ts';
import type { Connector } from '../../connector/broker.ts';
import { createDeviceAuthenticator } from '../devices/authenticate.ts';
import { startPresence } from '../devices/presence.ts';
import { replaceConfigurations } from '../devices/queries.ts';
import { keepRejections } from '../devices/rejections.ts';
import { recordEvents } from '../events/record.ts';
import { startIngest } from '../ingest/ingest.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { createKnownSenses } from '../measurements/known-senses.ts';
import { storeMeasurements } from '../measurements/store.ts';
import { notificationsOf } from '../outbox/notifications-of.ts';
import { startOutbox } from '../outbox/outbox.ts';
import { createDownlinks } from '../profiles/downlinks.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import { settleProfiles } from '../profiles/settle.ts';
import { observeConnector, observeIngest } from './observe.ts';
import type { Shared } from './shared.ts';

const dayMs = 86_400_000;
/** Two transactions in flight, and what reads devices for them. */
const ingestConnections = 4;
/** Shorter than what a process is given to stop in. */
const drainMs = 6_000;

/** The half that devices talk to: the connector, ingest behind it, and what rings phones. */
export async function startDeviceSide(shared: Shared): Promise<Connector> {
  const { config, log, releases, db, bus, keys, clock } = shared;
  const downlinks = createDownlinks({ db, bus });
  const ingest = await startIngestion(shared, downlinks);

  const connectorId = pickConnectorId(shared);
  const onError = (err: unknown) => log.warn({ err }, 'presence could not be written');
  const presence = await startPresence({ db, connectorId, onError });
  releases.add(() => presence.close());

  const authenticator = createDeviceAuthenticator({ db, keys: keys.deviceTokens, bus });
  releases.add(() => authenticator.close());

  const connector = await startConnector(
    {
      tcp: config.mqttListen,
      tls: config.mqttsListen,
      limits: config.mqtt,
      log,
      observe: observeConnector(shared.metrics.registry),
    },
    {
      authenticateDevice: authenticator.authenticateDevice,
      isStillAllowed: authenticator.isStillAllowed,
      ingest: ingest.ingest,
      subscribed: downlinks.subscribed,
      due: downlinks.due,
      delivered: downlinks.delivered,
      presence: presence.presence,
      bus,
      clock,
    },
  );
  shared.edges.add(() => connector.close({ drainMs }));
  return connector;
}

async function startIngestion(shared: Shared, downlinks: Downlinks): Promise<Ingest> {
  const { config, log, releases, storage, db, bus, clock } = shared;
  const outbox = await startOutbox({
    db,
    connectionString: storage.connectionString,
    config: config.notifications,
    log,
    clock,
  });
  releases.add(() => outbox.close());

  const knownSenses = createKnownSenses();
  const { maxAheadMs, ringMaxAgeMs } = config.ingest;
  const ingest: Ingest = startIngest(
    {
      limits: { maxAheadMs, ringMaxAgeMs, maxAgeMs: config.retention.measurementsDays * dayMs },
      maxInFlight: 2,
      maxBatchItems: 5_000,
      maxRememberedDevices: 100_000,
    },
    {
      db: storage.open(ingestConnections),
      bus,
      log,
      writers: {
        storeMeasurements: (tx, rows) => storeMeasurements(tx, rows, knownSenses),
        recordEvents,
        keepRejections,
        settleProfiles,
        replaceConfigurations,
        notify: (tx, rings) => outbox.enqueue(tx, rings.flatMap(notificationsOf)),
      },
      handOver: downlinks.handOver,
      observe: observeIngest(shared.metrics.registry, () => ingest.depth()),
    },
  );
  releases.add(() => ingest.close(drainMs));
  return ingest;
}

/** Without a word, the first connector that is this service's own. */
function pickConnectorId({ config: { role, connectors } }: Shared): number {
  if (role.name === 'connector') return role.id;
  return connectors.find(({ kind }) => kind === 'mqtt')?.id ?? connectors[0]?.id ?? 0;
}
