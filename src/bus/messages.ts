import { z } from 'zod';
import { downTopics } from '../contract/topic.ts';
import type { BusMessages, Channel } from './bus.ts';

const id = z.int();

const number = z.tuple([z.string(), id, z.number()]);
const position = z.tuple([z.string(), id, z.number(), z.number()]);

const schemas = {
  device: z.object({
    deviceId: id,
    uuid: z.string(),
    push: z.enum(['profile', 'configuration']).optional(),
  }),
  down: z.object({
    uuid: z.string(),
    message: z.object({
      topic: z.enum(downTopics),
      payload: z.unknown(),
      pId: z.string().optional(),
      keptId: id.optional(),
    }),
  }),
  access: z.object({ deviceId: id, uuid: z.string() }),
  session: z.object({ uuid: z.string(), clientId: z.string(), connection: z.string() }),
  removed: z.object({ accountId: id }),
  revoked: z.object({ accountId: id, sessionId: z.string().optional() }),
  events: z.object({ accountIds: z.array(id), deviceIds: z.array(id) }),
  labels: z.object({ accountId: id }),
  fleet: z.object({ accountId: id }),
  presence: z.object({
    accounts: z.array(
      z.object({
        accountId: id,
        devices: z
          .array(
            z.object({
              deviceId: id,
              uuid: z.string(),
              connected: z.boolean(),
              connectorId: id,
              seenTs: id,
            }),
          )
          .nullable(),
      }),
    ),
  }),
  measurements: z.object({
    accountId: id,
    devices: z.array(
      z.object({ deviceId: id, uuid: z.string(), values: z.array(z.union([number, position])) }),
    ),
  }),
  listeners: z.object({ process: z.string(), accountIds: z.array(id) }),
  'listeners-asked': z.object({}),
  ticket: z.object({ ticket: z.string(), opening: id }),
  resync: z.object({}),
} satisfies { [C in Channel]: z.ZodType<BusMessages[C]> };

/** `heartbeat` proves that the way through Redis is open. */
const Envelope = z.object({
  from: z.string(),
  channel: z.enum(['heartbeat', ...(Object.keys(schemas) as Channel[])]),
  message: z.unknown(),
});

export type ReceivedMessage = {
  from: string;
  message: { [C in Channel]: { channel: C; message: BusMessages[C] } }[Channel] | null;
};

/** What another process wrote; null when it is nothing this version understands. */
export function decodeBusMessage(text: string): ReceivedMessage | null {
  const envelope = Envelope.safeParse(parseJson(text)).data;
  if (!envelope) return null;
  if (envelope.channel === 'heartbeat') return { from: envelope.from, message: null };
  const message = schemas[envelope.channel].safeParse(envelope.message);
  if (!message.success) return null;
  return {
    from: envelope.from,
    message: { channel: envelope.channel, message: message.data } as ReceivedMessage['message'],
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
