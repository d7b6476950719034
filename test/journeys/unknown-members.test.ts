import { it } from 'vitest';
import { configuration, openApp, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';
import { expectToldOnce } from './unknown-member.ts';

it('a device that sends unknown members is told once, and what it sent is stored', async () => {
  const service = await testService();
  const app = await openApp(service.url);
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const device = await connectDevice(registration);
  try {
    await expectToldOnce(app, device);
  } finally {
    await device.end();
    await service.close();
  }
});
