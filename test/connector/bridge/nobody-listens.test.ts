import { expect, onTestFinished, test } from 'vitest';
import { until } from '../harness.ts';
import { serveBroker } from './served-broker.ts';

test.each([
  { reasonCode: 0, delivered: 1, refused: 0 },
  // Nobody has subscribed, MQTT 5 section 2.4.
  { reasonCode: 16, delivered: 0, refused: 0 },
  { reasonCode: 0x87, delivered: 0, refused: 1 },
])(
  'a message that the broker answers with $reasonCode is delivered or not, and counted',
  async ({ reasonCode, delivered, refused }) => {
    const { answers, devices, deliver, published, status, store, close } = await serveBroker();
    onTestFinished(close);
    const [device] = devices;
    answers.reasonCode = reasonCode;
    const text = { topic: 'display' as const, payload: { text: 'x' }, keptId: 1 };
    store.onDue = (topic) => (topic === 'display' ? [text] : []);
    await deliver(device, 'measurements', { sId: '0x1', val: 1 });
    const countRefused = () => status.read().refused.get('not-published') ?? 0;
    const isCounted = () => countRefused() > 0 || status.read().lastOutTs !== null;
    await until(() => isCounted() && store.delivered.length === delivered);
    expect(published).toEqual([
      { topic: `devices/${device.uuid}/down/display`, payload: text.payload },
    ]);
    expect(countRefused()).toBe(refused);
    expect(store.delivered).toHaveLength(delivered);
  },
);
