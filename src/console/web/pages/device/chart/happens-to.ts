import type { StreamMessage } from '../../../app/stream.ts';

/** Whether it is an event or an alarm of the device. */
export function happensTo(uuid: string, message: StreamMessage): boolean {
  if (message.kind === 'event') return message.event.deviceAuthUuid === uuid;
  return message.kind === 'alarm' && message.deviceAuthUuid === uuid;
}
