import { isRepresentative, upgradeCases } from './cases.ts';
import { describeUpgrades } from './describe-upgrades.ts';

describeUpgrades(upgradeCases.filter(isRepresentative));
