import { z } from 'zod';
import { CommandAnswer } from '../../src/contract/command.ts';
import { Configuration } from '../../src/contract/configuration.ts';
import {
  CommandDownlink,
  ConfigurationDownlink,
  DisplayDownlink,
  ErrorDownlink,
  ProfileDownlink,
  StateDownlink,
  TimeDownlink,
  TokenDownlink,
} from '../../src/contract/profile.ts';
import {
  type DownTopic,
  downTopics,
  EventReport,
  maxItems,
  ProfileMessage,
  SentMeasurement,
  StateReport,
  TimeRequest,
  type UpTopic,
  upTopics,
} from '../../src/contract/uplink.ts';
import { capitalized } from '../../src/lib/text.ts';

/**
 * The device contract as an AsyncAPI 3 document. It is built from the schemas that the service checks messages with.
 * The channels are seen from the service: it receives what devices publish.
 */
export function asyncApiDocument(): Record<string, unknown> {
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  const messages: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};

  function add(
    topic: string,
    direction: 'up' | 'down',
    { schema, summary, example }: ContractMessage,
  ): void {
    const channel = `${direction}-${topic}`;
    const name = capitalized(direction) + capitalized(topic);
    schemas[name] = toSchema(schema, direction);
    messages[name] = {
      name,
      title: summary,
      contentType: 'application/json',
      payload: { $ref: `#/components/schemas/${name}` },
      examples: [{ payload: example }],
    };
    channels[channel] = {
      address: `devices/{uuid}/${direction}/${topic}`,
      description: summary,
      servers: [{ $ref: '#/servers/mqtt' }],
      parameters: { uuid: { $ref: '#/components/parameters/uuid' } },
      messages: { [name]: { $ref: `#/components/messages/${name}` } },
    };
    operations[channel] = {
      action: direction === 'up' ? 'receive' : 'send',
      summary,
      channel: { $ref: `#/channels/${channel}` },
      messages: [{ $ref: `#/channels/${channel}/messages/${name}` }],
      bindings: { mqtt: { qos: 1, retain: false } },
    };
  }

  for (const topic of upTopics) add(topic, 'up', published[topic]);
  for (const topic of downTopics) add(topic, 'down', sent[topic]);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Sensorium – devices over MQTT',
      version: '2.0.0',
      description: describeContract,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
    },
    defaultContentType: 'application/json',
    servers: {
      mqtt: {
        host: '{host}:{port}',
        protocol: 'mqtt',
        protocolVersion: '3.1.1',
        description: 'As in the answer to the device’s registration: mqtt, mqtts, ws or wss.',
        variables: { host: { default: 'localhost' }, port: { default: '1883' } },
        security: [{ $ref: '#/components/securitySchemes/device' }],
      },
    },
    channels,
    operations,
    components: {
      messages,
      schemas,
      parameters: { uuid: { description: 'The device’s own deviceAuthUuid.' } },
      securitySchemes: {
        device: {
          type: 'userPassword',
          description: 'User name: deviceAuthUuid. Password: deviceAuthToken.',
        },
      },
    },
  };
}

/** The schemas' metadata without `id`, so that `toJSONSchema` writes each schema out instead of a reference. */
class DescriptionsOnly extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get(schema: z.core.$ZodType) {
    const { id: _, ...rest } = z.globalRegistry.get(schema) ?? {};
    return rest;
  }
}
const withoutNames = new DescriptionsOnly();

function toSchema(schema: z.ZodType, direction: 'up' | 'down'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    target: 'draft-7',
    // A device may leave out members that have a default; a message to a device has all of them.
    io: direction === 'up' ? 'input' : 'output',
    unrepresentable: 'any',
    metadata: withoutNames,
  });
  return rest;
}

type ContractMessage = { schema: z.ZodType; summary: string; example: unknown };

/** One item, or an array of up to a thousand. The service rejects the bad items and takes the others. */
const oneOrMany = (schema: z.ZodType) => z.union([schema, z.array(schema).max(maxItems)]);

const ts = 1_767_225_600_000;
const pId = '6f1c1d5e-58a3-4a55-9a80-0a2a5d0a9c11';
const commandId = '1b4e28ba-2fa1-41d2-883f-0016d3cca427';

/** What devices publish, by topic below `up/`. */
const published: Record<UpTopic, ContractMessage> = {
  measurements: {
    schema: oneOrMany(SentMeasurement),
    summary: 'Measurements. The service stores them, then evaluates them if it runs the profile.',
    example: [
      { sId: '0x1', val: 21.5, ts },
      { sId: '0x2', val: { lat: 47.37, long: 8.54 } },
    ],
  },
  state: {
    schema: StateReport,
    summary: 'The state that the device’s own engine is in.',
    example: { puId: 1, stId: 2, evId: 3, ts },
  },
  events: {
    schema: oneOrMany(EventReport),
    summary:
      'Events found by the device’s own engine. The service sends their push messages and SMS.',
    example: {
      cause: {
        engine: { pId, puId: 1, stId: 1, evId: 1, ts },
        senses: [{ sId: '0x1', val: 31, ts }],
      },
    },
  },
  profile: {
    schema: ProfileMessage,
    summary: 'The answer to a profile, or a request for the pending one.',
    example: { pId, state: 'current', engine: 'service' },
  },
  configuration: {
    schema: Configuration,
    summary: 'The device describes itself. This replaces its configuration.',
    example: {
      device: { name: 'Greenhouse', swVersion: '1.2.0' },
      module: [{ moduleId: 'climate', senses: [{ sId: '0x1', min: -40, max: 85 }] }],
    },
  },
  time: {
    schema: TimeRequest,
    summary: 'A device without a clock asks for the time; the service answers on `down/time`.',
    example: { echo: 17 },
  },
  command: {
    schema: CommandAnswer,
    summary:
      'The answer to a command: `accepted` and `running` as far as it takes time, then `done` or ' +
      '`failed`. An answer may be repeated.',
    example: { commandId, state: 'done', result: { openedMm: 40 } },
  },
};

/** What the service sends to devices, by topic below `down/`. */
const sent: Record<DownTopic, ContractMessage> = {
  profile: {
    schema: ProfileDownlink,
    summary:
      'The pending profile: sent at once, and on each subscription until the device answers it.',
    example: { pId, purposes: [{ puId: 1, initStId: 1, states: [{ stId: 1 }] }], ts },
  },
  configuration: {
    schema: ConfigurationDownlink,
    summary: 'The configuration: sent on each subscription and after each change.',
    example: { device: { name: 'Greenhouse' }, module: [], ts },
  },
  state: {
    schema: StateDownlink,
    summary:
      'The device’s current state: sent on each subscription and whenever the service’s engine ' +
      'changes it.',
    example: { puId: 1, stId: 2, ts },
  },
  display: {
    schema: DisplayDownlink,
    summary:
      'A text for the device’s display: sent at once or when the device subscribes. The ' +
      'service keeps it for a day until the device acknowledges it.',
    example: { text: 'Close the window', ts },
  },
  errors: {
    schema: ErrorDownlink,
    summary: 'What was wrong with a message that the device sent.',
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
      'The current time, and the `echo` of the request. Half of the round-trip time is the delay.',
    example: { ts, echo: 17 },
  },
  token: {
    schema: TokenDownlink,
    summary:
      'The new token, sent while the operator changes the secret: on each subscription that ' +
      'names this topic (`down/#` does not), until the device has logged in with it. From then ' +
      'on the old token is no longer accepted.',
    example: { deviceAuthToken: 'kX3vJq0c8sS5h2WmZ1nU7dRt4yLbE9aG', ts },
  },
  command: {
    schema: CommandDownlink,
    summary:
      'A command: sent in order, and again on each subscription until the device answers it on ' +
      '`up/command`. The same `commandId` is the same command.',
    example: {
      commandId,
      name: 'open-valve',
      params: { openMm: 40 },
      sentTs: ts,
      expiresTs: ts + 900_000,
    },
  },
};

/** What authors of firmware need to know besides the messages. */
const describeContract = `
Devices connect with MQTT 3.1.1 (or 3.1) or MQTT 5. The user name is the device's deviceAuthUuid, the password
its deviceAuthToken. docs/mqtt5.md describes what MQTT 5 adds: acknowledgements with reason codes, and limits.

A device publishes only to its own \`devices/{uuid}/up/…\` and subscribes only to its own
\`devices/{uuid}/down/…\` (including \`down/#\`). Publishing elsewhere closes the connection; subscribing
elsewhere is answered 128.

An acknowledgement (PUBACK, PUBREC) means stored: the service sends it after the transaction that stores the
message has committed. The device has to send a message again if it was not acknowledged. The same measurement
(same sense, ts and value) is stored only once. Without a \`ts\` the service cannot tell a repetition from
something new, so send \`ts\`.

The service keeps wrong items as rejections, reports them on \`down/errors\`, and acknowledges the message; the
good items of the same array are stored. It reports the first 10 rejections of a message and the first 60 of a
minute individually, and the rest as a number. A member that has no effect is reported once an hour
(\`unknown-member\`) and otherwise ignored. Names that begin with \`x-\` are free.

\`down/errors\` also reports, once an hour, a clock that looks wrong; nothing is rejected then.
\`clock-ahead\`: a \`ts\` is more than 10 s ahead of the service. The value is stored with this \`ts\` and
evaluated as of its arrival. \`clock-back\`: for a quarter of an hour all values of a sense were older than its
newest, and advanced like a clock. From the newest of them on, values are evaluated again. Values of one message
are evaluated in the order of their \`ts\`, regardless of their order in the message.

The service keeps no sessions and retains no messages: it sends a device what it has to know each time the
device subscribes. A client with the same client identifier takes over the session. A device has at most 4
connections.

Limits, unless the operator changed them: packets of 64 KiB (up to 256 KiB for \`up/measurements\` if the
operator allows it), a CONNECT of 4 KiB, 16 subscriptions per connection, and 8 topic levels. On average 100
messages per second (1,000 at once after a pause), and 1,000 measurements and events per second, including wrong
ones; above that the service reads more slowly but drops nothing. A payload has at most 20,000 of the characters
{, [ and , outside its strings; a payload over 64 KiB at most 12,000. A device may connect 120 times at once and
twice a second on average; further attempts are answered CONNACK 3.
`.trim();
