import { expect, it } from 'vitest';
import { isRepresentative, migratingCases } from './cases.ts';
import { describeKilledUpgrades } from './describe-killed.ts';

it('there is a version whose upgrade has steps', () => {
  expect(migratingCases).not.toEqual([]);
});

describeKilledUpgrades(migratingCases.filter((one, at, all) => !isRepresentative(one, at, all)));
