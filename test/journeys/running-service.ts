import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { runProgram, type Running } from './process.ts';

/** The whole service as users start it, on a database and ports of its own. */
export type RunningService = {
  url: string;
  mqttUrl: string;
  database: TestDatabase;
  process: Running;
  close(): Promise<void>;
};

/** The secret of accounts' and devices' tokens here. */
export const runningSecret = 'a secret for tests that is long enough to be one';

/** `flags`: for Node itself. */
export async function startRunningService(flags: string[] = []): Promise<RunningService> {
  const database = await testDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'sensorium-journey-'));
  const local = '127.0.0.1';
  const service = runProgram(process.execPath, [...flags, 'src/main.ts'], {
    env: {
      DATABASE_URL: database.url,
      SECRET: runningSecret,
      DATA_DIR: dataDir,
      HTTP_HOST: local,
      HTTP_PORT: '0',
      MQTT_HOST: local,
      MQTT_PORT: '0',
      PUBLIC_HOST: local,
    },
  });
  const close = async () => {
    service.child.kill('SIGTERM');
    await service.ended();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const ready = /"http":\{[^}]*"port":(\d+)[^\n]*"mqtt":\{[^}]*"port":(\d+)[^\n]*"Ready\."/;
    const [, port, mqttPort] = await service.printed(ready);
    const [url, mqttUrl] = [`http://${local}:${port}`, `mqtt://${local}:${mqttPort}`];
    return { url, mqttUrl, database, process: service, close };
  } catch (error) {
    await close();
    throw error;
  }
}
