/** How far a profile is on one of its devices. */
export const profileStates = [
  'pending',
  'sent',
  'current',
  'rejected',
  'superseded',
  'replaced',
] as const;
export type ProfileState = (typeof profileStates)[number];

/** What happens to a profile on a device. */
export type ProfileHappening = 'received' | 'accepted' | 'rejected' | 'superseded' | 'replaced';

type Transition = {
  happening: ProfileHappening;
  from: readonly ProfileState[];
  to: ProfileState;
  /** When it happens, and what follows, in the words of the docs. */
  when: string;
  effects: string;
};

/** Every transition there is; a profile begins as `pending`. */
export const profileTransitions: readonly Transition[] = [
  {
    happening: 'received',
    from: ['pending'],
    to: 'sent',
    when: 'the device acknowledged `down/profile`',
    effects: 'none: the device goes on with what it runs',
  },
  {
    happening: 'accepted',
    from: ['pending', 'sent', 'current'],
    to: 'current',
    when: 'the device answers `current`; or one that never subscribed to `down/profile`, nor requested it, sends anything',
    effects:
      "the one before is replaced, evidence is emptied, the device enters the first purpose's initial state; said again of the current one: only its engine changes",
  },
  {
    happening: 'rejected',
    from: ['pending', 'sent', 'current'],
    to: 'rejected',
    when: 'the device answers `rejected`',
    effects: 'its text is kept; of the current one: nothing is evaluated any more',
  },
  {
    happening: 'superseded',
    from: ['pending', 'sent'],
    to: 'superseded',
    when: 'another profile is installed',
    effects: 'none: an answer to it is kept as a rejection (`unknown-profile`)',
  },
  {
    happening: 'replaced',
    from: ['current'],
    to: 'replaced',
    when: 'another profile becomes current',
    effects: 'its evidence is gone; its events stay',
  },
];

/** The transition that something makes, whatever the profile's state is now. */
export function transitionOf(happening: ProfileHappening): Transition {
  const found = profileTransitions.find((transition) => transition.happening === happening);
  if (!found) throw new Error(`no transition for ${happening}`);
  return found;
}

/** States of a profile that waits for the device's answer; a device has one such profile at most. */
export const awaitingAnswer = transitionOf('superseded').from;

/** States of a profile that a device still needs. */
export const neededStates = transitionOf('accepted').from;
