import { account } from './en/account.ts';
import { accountLists } from './en/account-lists.ts';
import { add } from './en/add.ts';
import { alarms } from './en/alarms.ts';
import { chart } from './en/chart.ts';
import { device } from './en/device.ts';
import { deviceTabs } from './en/device-tabs.ts';
import { fleet } from './en/fleet.ts';
import { shell } from './en/shell.ts';
import { signIn } from './en/sign-in.ts';
import { watch } from './en/watch.ts';

/** Every text of the console; the other languages have the same keys. */
export const en = {
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
