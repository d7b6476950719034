import type { DescribedDevice, Purpose, Sense } from '../../api/types.ts';
import { hereWith } from '../../app/router.ts';
import { t } from '../../text/t.ts';

export type CurrentProfile = Extract<DescribedDevice['currentProfile'], { pId: string }>;

/** What each tab of a device receives. */
export type TabProps = {
  uuid: string;
  configuration: DescribedDevice;
  senses: ReadonlyMap<string, Sense>;
  /** null if none is installed. */
  purposes: CurrentProfile | null;
};

/** The URL of another tab of this device. The chart keeps its range; parameters of the current tab are removed. */
export const toTab = (tab: string): string => hereWith({ tab, cursor: '', sense: '' });

/** The names of a profile's purposes. */
export const sayNames = (
  purposes: readonly Pick<Purpose, 'puId' | 'name'>[] | undefined,
): string =>
  purposes
    ? purposes.map(({ name, puId }) => name || t('profile.purpose', { id: puId })).join(', ')
    : t('profile.unnamed');
