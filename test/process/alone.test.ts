import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../journeys/process.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

test.each([
  [['api'], true],
  [[], false],
])('npm start %j without REDIS_URL says that it is alone: %s', async (args, isTold) => {
  const service = runProgram(process.execPath, ['src/main.ts', ...args], {
    env: {
      ...{ HTTP_PORT: '0', MQTT_PORT: '0', HTTP_HOST: '127.0.0.1', MQTT_HOST: '127.0.0.1' },
      DATABASE_URL: database.url,
      SECRET: 'a secret that only this test knows, long enough',
    },
  });
  try {
    await service.printed(/"Ready\."/);
    expect(service.stdout().includes('"event":"bus.alone"')).toBe(isTold);
  } finally {
    service.child.kill('SIGTERM');
    await service.ended();
  }
});
