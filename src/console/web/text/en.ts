import { account, accountLists } from './en/account.ts';
import { add } from './en/add.ts';
import { alarms } from './en/alarms.ts';
import { chart, device, deviceTabs } from './en/device.ts';
import { fleet } from './en/fleet.ts';
import { shell, signIn } from './en/shell.ts';
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
