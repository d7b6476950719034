import type { ConnectorSettings } from '../../src/config/settings.ts';
import type { Mosquitto } from '../support/mosquitto.ts';
import { runOn } from '../support/template.ts';

/** A connector of kind `bridge` for a broker of the test's own. */
export function bridgeTo(
  broker: Pick<Mosquitto, 'port' | 'url'>,
  id: number,
  shareName: string | null = 'sensorium',
): ConnectorSettings {
  return {
    kind: 'bridge',
    id,
    name: `broker-${id}`,
    protocol: 'mqtt',
    host: '127.0.0.1',
    port: broker.port,
    broker: { url: broker.url, shareName },
  };
}

/** The process that holds the lease, and its session in the database. */
export type Holder = { process: number; session: number };

/** The bridge that holds the lease of the only broker; null if none does. */
export function findHolder(databaseUrl: string): Promise<Holder | null> {
  return runOn(databaseUrl, async (client) => {
    const { rows } = await client.query<Holder>(
      `select substring(application_name from 'process (\\d+)')::int as process, pid as session
         from pg_stat_activity a join pg_locks l using (pid)
        where l.locktype = 'advisory' and l.granted and a.datname = current_database()
          and a.application_name like 'sensorium connector %'`,
    );
    return rows[0] ?? null;
  });
}

/** Ends a session as a server that goes away does. */
export async function endSession(databaseUrl: string, session: number): Promise<void> {
  await runOn(databaseUrl, (client) => client.query('select pg_terminate_backend($1)', [session]));
}
