import { z } from 'zod';
import { timestamp } from '../http/schema.ts';
import type { Turn } from './turn-queries.ts';

const Engine = z.object({
  pId: z.string(),
  puId: z.int(),
  stId: z.int(),
  evId: z.int(),
  ts: timestamp,
});

/** A message to a webhook about an event of a device. */
export const NoticeHook = z.object({
  type: z.literal('notice'),
  timestamp: timestamp.meta({ description: 'When the event asked for it.' }),
  data: z.object({
    deviceAuthUuid: z.string(),
    deviceName: z.string(),
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    title: z.string(),
    body: z.string(),
    cause: z.object({
      engine: Engine,
      senses: z.array(
        z.object({
          sId: z.string(),
          val: z.number(),
          ts: timestamp,
          lat: z.number().optional(),
          long: z.number().optional(),
        }),
      ),
    }),
  }),
});
export type NoticeHook = z.infer<typeof NoticeHook>;

/** A trial. */
export const TestHook = z.object({
  type: z.literal('test'),
  timestamp,
  data: z.object({ title: z.string(), body: z.string() }),
});
export type TestHook = z.infer<typeof TestHook>;

/** What a webhook is sent, before it is signed. */
export function hookPayload(turn: Turn): NoticeHook | TestHook {
  const { title, body, createdTs, data, deviceUuid, deviceName } = turn;
  if (data === null || deviceUuid === null)
    return { type: 'test', timestamp: createdTs, data: { title, body } };
  const { engine, senses } = data;
  const { puId, stId, evId } = engine;
  return {
    type: 'notice',
    timestamp: createdTs,
    data: {
      deviceAuthUuid: deviceUuid,
      deviceName: deviceName ?? '',
      puId,
      stId,
      evId,
      title,
      body,
      cause: { engine, senses },
    },
  };
}
