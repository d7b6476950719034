import { checkCosts } from '../engine/check.ts';
import { checkProfile } from '../engine/check-profile.ts';
import type { Purpose } from '../contract/purpose.ts';
import { checkPurposeSizes } from '../contract/sizes.ts';
import { DomainError } from '../errors.ts';
import type { Problem } from '../errors.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { ProfileText } from './insert-profile.ts';
import type { ProfileInstall } from './schema.ts';

// A large invalid array must not cause a larger answer.
const maxProblems = 100;

/** All that is wrong with these purposes as one profile. Stored ones keep the names that they have. */
export function checkInstall(
  request: ProfileInstall,
  purposes: Purpose[],
  { bytes }: ProfileText,
  limits: QuotaSettings,
): Problem[] {
  const pathOf = placeIn(request);
  const problems = [
    ...checkProfile(purposes, pathOf),
    ...request.purposes.flatMap((purpose, i) =>
      checkPurposeSizes(purpose, limits, `/purposes/${i}`),
    ),
    ...checkCosts(purposes, limits, pathOf),
  ];
  if (bytes > limits.profileBytes) problems.push(tooLarge(bytes, limits));
  return problems.slice(0, maxProblems);
}

export function tooLarge(bytes: number, { profileBytes }: QuotaSettings): Problem {
  const message = `a profile has at most ${profileBytes} bytes, this one has ${bytes}`;
  return { path: '', message };
}

/** Where a purpose of the profile stands in the request: stored ones come first. */
export function placeIn({ purposeUuids }: ProfileInstall) {
  const stored = purposeUuids.length;
  return (index: number) =>
    index < stored ? `/purposeUuids/${index}` : `/purposes/${index - stored}`;
}

/** Nothing is installed of purposes that do not fit together. */
export const unfit = (problems: Problem[]) =>
  new DomainError('invalid-input', 'The purposes do not fit together.', { problems });
