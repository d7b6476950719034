import { isRepresentative, migratingCases } from './cases.ts';
import { describeKilledUpgrades } from './describe-killed.ts';

describeKilledUpgrades(migratingCases.filter(isRepresentative));
