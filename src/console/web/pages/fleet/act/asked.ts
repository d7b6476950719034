import type { DeviceAction } from '../../../api/types.ts';

/** What an action takes beside its devices. */
export type Asked = Pick<DeviceAction, 'labels' | 'untilTs' | 'reason'>;

/** Of a form's fields: `onChange` is given null while they are not filled in. */
export type FieldsProps = {
  what: 'label' | 'unlabel' | 'mute' | 'remove';
  number: number;
  onChange: (asked: Asked | null) => void;
};
