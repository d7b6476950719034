import { account } from './de/account.ts';
import { accountLists } from './de/account-lists.ts';
import { add } from './de/add.ts';
import { alarms } from './de/alarms.ts';
import { chart } from './de/chart.ts';
import { device } from './de/device.ts';
import { deviceTabs } from './de/device-tabs.ts';
import { fleet } from './de/fleet.ts';
import { shell } from './de/shell.ts';
import { signIn } from './de/sign-in.ts';
import { watch } from './de/watch.ts';

/** German. */
export const de = {
  ...shell,
  ...signIn,
  ...fleet,
  ...add,
  ...chart,
  ...device,
  ...deviceTabs,
  ...alarms,
  ...account,
  ...accountLists,
  ...watch,
};
