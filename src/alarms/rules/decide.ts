import type { AlarmSignal } from '../../contract/alarm-signal.ts';
import { nameKey } from '../alarm.ts';
import { isSamePlace } from '../../contract/place.ts';
import { close, closeDue, end, endsByMove } from './close.ts';
import type { DeviceDraft } from './draft.ts';
import { askPeople, fireAlarm, whyNobody } from '../rules.ts';

/** Takes in one signal of a device, in the order in which they happened. */
export function decide(device: DeviceDraft, signal: AlarmSignal): void {
  const { arrivedTs } = signal;
  closeDue(device, arrivedTs);
  const open = () => [...device.open.values()];
  switch (signal.kind) {
    case 'fired':
      fireAlarm(device, signal);
      return;
    case 'ended':
      for (const of of signal.of) {
        const draft = device.open.get(nameKey(of));
        if (draft && draft.alarm.movedTo === null && !draft.alarm.isReported)
          end(device, draft, 'cleared', arrivedTs);
      }
      return;
    case 'moved':
      if (isSamePlace(signal.from, signal.to)) return;
      for (const draft of open())
        if (endsByMove(draft.alarm, signal.to, signal.isReport))
          end(device, draft, 'left-state', arrivedTs);
      return;
    case 'heard':
      hear(device, signal);
      return;
    case 'profile':
      for (const draft of open()) close(device, draft, 'profile', arrivedTs);
      device.isProfileOver = true;
      return;
    case 'configuration': {
      const left = new Set(signal.sIds);
      for (const draft of open())
        if (draft.alarm.sIds.some((sId) => !left.has(sId)))
          close(device, draft, 'configuration', arrivedTs);
    }
  }
}

/** What began too old to be told is told with the next fresh measurement that leaves it open. */
function hear(device: DeviceDraft, { sIds }: AlarmSignal & { kind: 'heard' }): void {
  for (const draft of device.open.values()) {
    const { alarm } = draft;
    const waits = alarm.waitsForFresh && alarm.announcedTs === null && draft.ask === null;
    if (!waits || alarm.endsTs !== null || !alarm.sIds.some((sId) => sIds.includes(sId))) continue;
    if (whyNobody(device, alarm, true) !== null) continue;
    const { event, actions, eventName: name } = alarm;
    askPeople(device, draft, { device: alarm.device, event, actions, name, isFiring: false });
  }
}
