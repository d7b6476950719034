import { flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';

const purpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

export const reportedEvents: NoisyKind = {
  name: 'reported-events',
  says: '10 devices that report hundreds of events in a message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const pId = await install(enemy, devices, [purpose]);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 300 }, () => {
        const ts = startTs + ++sent;
        const engine = { pId, puId: 1, stId: 1, evId: 1, ts };
        return { cause: { engine, senses: [{ sId: '0x01', val: 1, ts }] }, timestamp: ts };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, topic: 'events', inFlight: 2, payload }, signal);
  },
};
