import { isRepresentative, upgradeCases } from './cases.ts';
import { describeUpgrades } from './describe-upgrades.ts';

const others = upgradeCases.filter((one, at, all) => !isRepresentative(one, at, all));
describeUpgrades(others);
