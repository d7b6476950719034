import {
  awaitingAnswer,
  neededStates,
  type ProfileHappening,
  transitionOf,
} from '../contract/profile.ts';
import { textList } from '../db/text-list.ts';

/** A transition as SQL: whether a row's `state` is one that it leads from, and the state that it leads to. */
export function transition(happening: ProfileHappening): { from: string; to: string } {
  const { from, to } = transitionOf(happening);
  return { from: textList(from), to: `'${to}'` };
}

/** As SQL: the states of a profile that waits for an answer, and of one that the device needs. */
export const awaiting = textList(awaitingAnswer);
export const needed = textList(neededStates);
