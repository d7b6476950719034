import type { DeviceAction } from '../../../api/types.ts';
import { quietFromNow, type AskedQuiet } from '../../../parts/quiet-fields.tsx';

/** What an action takes beside its devices. */
export type Asked = Required<Pick<DeviceAction, 'labels'>> | AskedQuiet | Record<string, never>;

/** As it is sent. */
export const toMembers = (asked: Asked): Pick<DeviceAction, 'labels' | 'untilTs' | 'reason'> =>
  'forMs' in asked ? quietFromNow(asked as AskedQuiet) : asked;

/** Of a form's fields: `onChange` is given null while they are not filled in. */
export type FieldsProps = {
  what: 'label' | 'unlabel' | 'mute' | 'remove';
  number: number;
  onChange: (asked: Asked | null) => void;
};
