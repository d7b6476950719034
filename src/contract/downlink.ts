import { z } from 'zod';
import { Configuration } from './configuration.ts';
import { Purpose } from './purpose.ts';
import { SentTs, TimeRequest } from './uplink.ts';

// What devices are sent, as they may rely on it. Nothing is validated with these: they are what the
// reference for firmware authors is made of.

/** The pending profile; `ts`: when it was installed. */
export const ProfileDownlink = z.object({
  pId: z.string(),
  purposes: z.array(Purpose),
  ts: SentTs,
});

/** The configuration as it is stored; `ts`: since when. */
export const ConfigurationDownlink = z.object({ ...Configuration.shape, ts: SentTs });

/** The service's engine moved the device, or: this is where it stands. */
export const StateDownlink = z.object({ puId: z.int(), stId: z.int(), ts: SentTs });

/** The action `display.showText` of an event. */
export const DisplayDownlink = z.object({ text: z.string(), ts: SentTs });

/** Something that the device sent was not taken for what it claims to be. */
export const ErrorDownlink = z.object({
  topic: z.string(),
  reason: z.string(),
  message: z.string(),
  path: z.string().optional().meta({ description: 'A JSON Pointer into what was sent.' }),
  more: z.int().optional().meta({ description: 'It stands for so many more of the same message.' }),
  ts: SentTs,
});

/** A device's new token, with which it logs in from now on. */
export const TokenDownlink = z.object({ deviceAuthToken: z.string(), ts: SentTs });

/** The answer to `up/time`: what time it is, and what was sent with the question. */
export const TimeDownlink = z.object({ ts: SentTs, echo: TimeRequest.shape.echo });
