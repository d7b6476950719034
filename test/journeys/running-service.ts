import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testDatabase, type TestDatabase } from '../harness/database.ts';
import { runProgram, type Running } from './process.ts';

/** The whole service as users start it, on a database and ports of its own. */
export type RunningService = {
  url: string;
  database: TestDatabase;
  process: Running;
  close(): Promise<void>;
};

export async function startRunningService(): Promise<RunningService> {
  const database = await testDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'sensorium-journey-'));
  const local = '127.0.0.1';
  const service = runProgram(process.execPath, ['src/main.ts'], {
    env: {
      DATABASE_URL: database.url,
      SECRET: 'a secret for tests that is long enough to be one',
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
    const [, port] = await service.printed(/"http":\{[^}]*"port":(\d+)[^\n]*"Ready\."/);
    return { url: `http://${local}:${port}`, database, process: service, close };
  } catch (error) {
    await close();
    throw error;
  }
}
