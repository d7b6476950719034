import { answerCommand, type CommandAnswer, isWaiting } from '../../contract/command.ts';
import { commandKey, costs, type DeviceState, type MessageScope } from './model.ts';

/** Applies a device's answer to a command. An answer to a command that the device does not have is a rejection. */
export function applyCommandAnswer(
  deviceState: DeviceState,
  { commandId, result, ...told }: CommandAnswer,
  { rows, arrivedTs, budget, outcome, reject }: MessageScope,
): DeviceState {
  budget.spent += costs.command;
  const { device } = deviceState;
  const command = rows.commands.get(commandKey(device.deviceId, commandId));
  if (!command) {
    const message = `This device has no command ${commandId}.`;
    reject({ reason: 'unknown-command', message, path: '/commandId' });
    return deviceState;
  }
  const answer = { ...told, ...(result === undefined ? {} : { result: JSON.stringify(result) }) };
  const after = answerCommand(command.after, answer, arrivedTs);
  if (after === command.after) {
    outcome?.repeat();
    return deviceState;
  }
  const isNextDue = isWaiting(command.after.state) && !isWaiting(after.state);
  command.after = after;
  outcome?.store();
  rows.effects.push({ kind: 'command', device, commandId, isNextDue });
  return deviceState;
}
