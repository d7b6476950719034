import { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import {
  ConfigurationDownlink,
  DisplayDownlink,
  ErrorDownlink,
  ProfileDownlink,
  StateDownlink,
  TimeDownlink,
  TokenDownlink,
} from '../../src/contract/downlink.ts';
import type { DownTopic, UpTopic } from '../../src/contract/topic.ts';
import {
  EventReport,
  maxItems,
  ProfileMessage,
  SentMeasurement,
  StateReport,
  TimeRequest,
} from '../../src/contract/uplink.ts';

export type ContractMessage = { schema: z.ZodType; summary: string; example: unknown };

/** One of them, or up to a thousand in an array: what is wrong in it is left out, the rest is taken. */
const oneOrMany = (schema: z.ZodType) => z.union([schema, z.array(schema).max(maxItems)]);

const ts = 1_767_225_600_000;
const pId = '6f1c1d5e-58a3-4a55-9a80-0a2a5d0a9c11';

/** What devices publish, by its topic below `up/`. */
export const published: Record<UpTopic, ContractMessage> = {
  measurements: {
    schema: oneOrMany(SentMeasurement),
    summary: 'Measurements: stored, then evaluated if the service runs the profile.',
    example: [
      { sId: '0x1', val: 21.5, ts },
      { sId: '0x2', val: { lat: 47.37, long: 8.54 } },
    ],
  },
  state: {
    schema: StateReport,
    summary: 'Where the device’s own engine stands.',
    example: { puId: 1, stId: 2, evId: 3, ts },
  },
  events: {
    schema: oneOrMany(EventReport),
    summary: 'Events found by the device’s own engine; their push messages and SMS go out.',
    example: {
      cause: {
        engine: { pId, puId: 1, stId: 1, evId: 1, ts },
        senses: [{ sId: '0x1', val: 31, ts }],
      },
    },
  },
  profile: {
    schema: ProfileMessage,
    summary: 'The answer to a profile, or the wish to be sent the one that waits.',
    example: { pId, state: 'current', engine: 'service' },
  },
  configuration: {
    schema: Configuration,
    summary: 'The device describes itself: its configuration is replaced.',
    example: {
      device: { name: 'Greenhouse', swVersion: '1.2.0' },
      module: [{ moduleId: 'climate', senses: [{ sId: '0x1', min: -40, max: 85 }] }],
    },
  },
  time: {
    schema: TimeRequest,
    summary: 'A device without a clock asks what time it is; `down/time` answers.',
    example: { echo: 17 },
  },
};

/** What devices are sent, by its topic below `down/`. */
export const sent: Record<DownTopic, ContractMessage> = {
  profile: {
    schema: ProfileDownlink,
    summary: 'The pending profile: at once, and on each subscription until it is answered.',
    example: { pId, purposes: [{ puId: 1, initStId: 1, states: [{ stId: 1 }] }], ts },
  },
  configuration: {
    schema: ConfigurationDownlink,
    summary: 'The configuration: on each subscription, and when it was changed.',
    example: { device: { name: 'Greenhouse' }, module: [], ts },
  },
  state: {
    schema: StateDownlink,
    summary:
      'Where the device stands: on each subscription, and when the service’s engine moved it.',
    example: { puId: 1, stId: 2, ts },
  },
  display: {
    schema: DisplayDownlink,
    summary:
      'A text for the device’s display: at once, or when it subscribes. Kept for a day until acknowledged.',
    example: { text: 'Close the window', ts },
  },
  errors: {
    schema: ErrorDownlink,
    summary: 'What was wrong with something that the device sent.',
    example: {
      topic: 'devices/…/up/measurements',
      reason: 'out-of-range',
      message: '99 is outside …',
      path: '/0/val',
      ts,
    },
  },
  time: {
    schema: TimeDownlink,
    summary:
      'What time it is, and the `echo` of the question; half of the time between both is its delay.',
    example: { ts, echo: 17 },
  },
  token: {
    schema: TokenDownlink,
    summary:
      'The new token, while the operator changes the secret: on each subscription that names this topic (`down/#` does not), until the device has logged in with it. The old one opens nothing from then on.',
    example: { deviceAuthToken: 'kX3vJq0c8sS5h2WmZ1nU7dRt4yLbE9aG', ts },
  },
};
