import { z } from 'zod';
import { capitalized } from '../../src/lib/capitalized.ts';
import { downTopics, upTopics } from '../../src/contract/topic.ts';
import { published, sent, type ContractMessage } from './messages.ts';
import { describeContract } from './describe-contract.ts';

/**
 * The device contract as an AsyncAPI 3 document, made from the schemas that messages are checked
 * with. The channels are the service's: it receives what devices publish.
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
        description: 'As the answer to the device’s registration says: mqtt, mqtts, ws or wss.',
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

/** What is said of schemas but their names, which OpenAPI has: each message is written out as a whole. */
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
    // What a device sends may leave out what has a default; what it is sent has everything.
    io: direction === 'up' ? 'input' : 'output',
    unrepresentable: 'any',
    metadata: withoutNames,
  });
  return rest;
}
