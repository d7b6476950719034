import { account, accountLists } from './de/account.ts';
import { add } from './de/add.ts';
import { alarms } from './de/alarms.ts';
import { chart, device, deviceTabs } from './de/device.ts';
import { fleet } from './de/fleet.ts';
import { shell, signIn } from './de/shell.ts';
import { watch } from './de/watch.ts';

export { problems, rejections } from './de/service.ts';

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
