import { z } from 'zod';
import { CommandName } from './command.ts';
import { Configuration } from './configuration.ts';
import { Purpose } from './purpose.ts';
import { SentTs, TimeRequest } from './uplink.ts';

/** The states of a profile on one of its devices. */
export const profileStates = [
  'pending',
  'sent',
  'current',
  'rejected',
  'superseded',
  'replaced',
] as const;
export type ProfileState = (typeof profileStates)[number];

/** What can happen to a profile on a device. */
export type ProfileHappening = 'received' | 'accepted' | 'rejected' | 'superseded' | 'replaced';

type Transition = {
  happening: ProfileHappening;
  from: readonly ProfileState[];
  to: ProfileState;
  /** When it happens, and its effects, as the documentation describes them. */
  when: string;
  effects: string;
};

/** All transitions. A profile begins as `pending`. */
const profileTransitions: readonly Transition[] = [
  {
    happening: 'received',
    from: ['pending'],
    to: 'sent',
    when: 'the device acknowledged `down/profile`',
    effects: 'none; the device keeps running its current profile',
  },
  {
    happening: 'accepted',
    from: ['pending', 'sent', 'current'],
    to: 'current',
    when: 'the device answers `current`; or a device that never subscribed to `down/profile` and never requested its profile sends anything',
    effects:
      'the previous profile is replaced, the evidence is emptied, the device enters the initial state of the first purpose; if the profile was already current, only its engine changes',
  },
  {
    happening: 'rejected',
    from: ['pending', 'sent', 'current'],
    to: 'rejected',
    when: 'the device answers `rejected`',
    effects: 'its text is kept; if the profile was current, nothing is evaluated any more',
  },
  {
    happening: 'superseded',
    from: ['pending', 'sent'],
    to: 'superseded',
    when: 'another profile is installed',
    effects: 'none; an answer to it is kept as a rejection (`unknown-profile`)',
  },
  {
    happening: 'replaced',
    from: ['current'],
    to: 'replaced',
    when: 'another profile becomes current',
    effects: 'its evidence is deleted; its events remain',
  },
];

/** The transition caused by `happening`, whatever the profile's state is now. */
export function transitionOf(happening: ProfileHappening): Transition {
  const found = profileTransitions.find((transition) => transition.happening === happening);
  if (!found) throw new Error(`no transition for ${happening}`);
  return found;
}

/** States of a profile that waits for the device's answer. A device has at most one such profile. */
export const awaitingAnswer = transitionOf('superseded').from;

/** States of a profile that a device still needs. */
export const neededStates = transitionOf('accepted').from;

// The schemas of messages to devices, as devices may rely on them. They validate nothing; the reference for firmware
// authors is made from them.

/** The pending profile; `ts`: when it was installed. */
export const ProfileDownlink = z.object({
  pId: z.string(),
  purposes: z.array(Purpose),
  ts: SentTs,
});

/** The configuration as it is stored; `ts`: since when. */
export const ConfigurationDownlink = z.object({ ...Configuration.shape, ts: SentTs });

/** The service's engine moved the device, or reports its current state. */
export const StateDownlink = z.object({ puId: z.int(), stId: z.int(), ts: SentTs });

/** The action `display.showText` of an event. */
export const DisplayDownlink = z.object({ text: z.string(), ts: SentTs });

/** Something that the device sent was not accepted as what it claims to be. */
export const ErrorDownlink = z.object({
  topic: z.string(),
  reason: z.string(),
  message: z.string(),
  path: z.string().optional().meta({ description: 'A JSON Pointer into the message.' }),
  more: z.int().optional().meta({
    description: 'The number of further problems of the same message that this entry stands for.',
  }),
  ts: SentTs,
});

/** A device's new token, with which it logs in from now on. */
export const TokenDownlink = z.object({ deviceAuthToken: z.string(), ts: SentTs });

/** A command; `params` is absent if none were given. After `expiresTs` it has no meaning any more. */
export const CommandDownlink = z.object({
  commandId: z.guid(),
  name: CommandName,
  params: z.unknown().optional(),
  sentTs: SentTs,
  expiresTs: SentTs,
});

/** The answer to `up/time`: the time, and the `echo` of the request. */
export const TimeDownlink = z.object({ ts: SentTs, echo: TimeRequest.shape.echo });
