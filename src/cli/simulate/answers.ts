import { z } from 'zod';

/** What the service answers, as far as the simulator reads it. */
export const LoginAnswer = z.object({ accountAuthToken: z.string() });

export const RegistrationAnswer = z.object({
  protocol: z.string(),
  host: z.string(),
  port: z.int(),
  deviceAuthUuid: z.string(),
  deviceAuthToken: z.string(),
});
export type RegistrationAnswer = z.infer<typeof RegistrationAnswer>;

export const PurposeAnswer = z.object({ purposeUuid: z.string() });

export const MeasurementsAnswer = z.object({
  measurements: z.array(z.object({ sId: z.string(), val: z.number(), ts: z.number() })),
});

export const EventsAnswer = z.object({ events: z.array(z.object({ timestamp: z.number() })) });

export const AnyAnswer = z.unknown();

export const PollAnswer = z.object({
  messages: z.array(z.object({ topic: z.string(), payload: z.unknown() })),
  after: z.string(),
});

/** What arrives on `down/profile` and `down/errors`. */
export const ReceivedProfile = z.object({ pId: z.string() });
export const ErrorMessage = z.object({ reason: z.string(), message: z.string() });

/** What arrives on `down/token`. */
export const NewToken = z.object({ deviceAuthToken: z.string() });
