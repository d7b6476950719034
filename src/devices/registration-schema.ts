import { z } from 'zod';
import { Configuration } from '../contract/configuration.ts';
import { Labels } from '../contract/label.ts';
import { SomeWarnings } from '../contract/warnings.ts';
import { deviceUuid, timestamp } from '../http/schema.ts';
import { AskedProtocol } from './pick-connector.ts';

export const deviceToken = z.string().meta({
  description: 'The password of the device at its connector; its user name is its uuid.',
});

/** Specification section 2.4: the answer of Register Device. */
export const Registration = z.object({
  connectorId: z.int(),
  connectorName: z.string(),
  protocol: z.string().meta({ example: 'mqtt' }),
  host: z.string(),
  port: z.int(),
  deviceAuthUuid: deviceUuid,
  deviceAuthToken: deviceToken,
  timestamp,
  warnings: SomeWarnings,
});
export type Registration = z.infer<typeof Registration>;

/** The body of POST /v2/devices: how the device describes itself, what it speaks, and its labels. */
export const NewRegistration = Configuration.safeExtend({
  protocol: AskedProtocol.optional().meta({
    description:
      'What the device speaks: the answer names a connector for it. MQTT where it is absent.',
  }),
  labels: Labels.default([]).meta({
    description: 'What it is labelled with from the beginning; not part of its configuration.',
  }),
}).meta({ id: 'NewRegistration' });

export type NewRegistration = z.infer<typeof NewRegistration>;

/** The body of POST /v2/devices/batch. */
export const DeviceBatch = z.object({ devices: z.array(NewRegistration).min(1).max(1_000) });

export const BatchRegistration = z.object({
  devices: z.array(
    Registration.omit({ timestamp: true, warnings: true }).meta({ id: 'RegisteredDevice' }),
  ),
  timestamp,
  warnings: SomeWarnings,
});

export const TokenRotation = z
  .object({
    revoke: z.boolean().default(false).meta({
      description:
        'The old token opens nothing from now on; otherwise it does until the new one is first used.',
    }),
  })
  .prefault({});

export const RotatedToken = z.object({ deviceAuthToken: deviceToken, timestamp });

/** For the reference: a room with two senses. */
export const exampleConfiguration: z.input<typeof Configuration> = {
  device: { name: 'Cold room', swName: 'probe', swVersion: '1.0', hwVersion: 'A', serial: 'CR-1' },
  module: [
    {
      moduleId: 'climate',
      moduleName: 'Climate',
      senses: [
        { sId: '0x01', name: 'Temperature', unit: '°C', decimals: 1, min: -40, max: 85 },
        { sId: '0x02', name: 'Humidity', unit: '%', decimals: 0, min: 0, max: 100 },
      ],
    },
  ],
};

export const exampleRegistration: z.input<typeof NewRegistration> = {
  ...exampleConfiguration,
  labels: ['cellar'],
};
