import type { OpenAccount } from './account.ts';
import { AnyAnswer, type RegistrationAnswer } from './answers.ts';
import { forEachBounded } from './bounded.ts';
import { httpConnections } from './fleet.ts';

/** What a run made and has to remove. */
export type Made = { registrations: RegistrationAnswer[]; purposeUuid: string | null };

/** Removes the run's account; of an account that was there before, what the run added to it. */
export async function cleanUp(account: OpenAccount, made: Made): Promise<void> {
  const remove = (path: string) => account.rest.call({ method: 'DELETE', path, answer: AnyAnswer });
  if (account.throwAway) {
    await remove('/v2/accounts');
    return;
  }
  const never = new AbortController().signal;
  const uuids = made.registrations.map(({ deviceAuthUuid }) => deviceAuthUuid);
  await forEachBounded(uuids, httpConnections, never, (uuid) => remove(`/v2/devices/${uuid}`));
  if (made.purposeUuid) await remove(`/v2/purposes/${made.purposeUuid}`);
}
