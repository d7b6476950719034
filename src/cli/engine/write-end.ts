import type { Device } from './device.ts';
import { placeText, timeText } from './names.ts';
import type { Play } from './play.ts';
import type { WriteLine } from './write.ts';

/** Where the device stands after the stream, and when a tick is due; `explains`: what each cause waits for too. */
export async function writeEnd(
  { device, nowTs }: Play,
  { isJson, explains }: { isJson: boolean; explains: boolean },
  out: WriteLine,
): Promise<void> {
  if (!device || nowTs === null) {
    if (!isJson) await out('The stream is empty.');
    return;
  }
  const nextDueTs = device.nextDueTs();
  if (isJson) {
    const events = explains ? { events: device.explain(nowTs).events } : {};
    await out(JSON.stringify({ kind: 'end', nowTs, ends: device.place, nextDueTs, ...events }));
    return;
  }
  await out(`${timeText(nowTs)}  end: the device is in ${placeText(device.place, device.profile)}`);
  if (nextDueTs !== null) {
    await out(`    a tick is due at ${timeText(nextDueTs)} (--until lets time go on)`);
  }
  if (explains) for (const line of explanation(device, nowTs)) await out(`    ${line}`);
}

function explanation(device: Device, nowTs: number): string[] {
  return device
    .explain(nowTs)
    .events.flatMap(({ stId, evId, name, text, causes }) => [
      `event ${evId} of state ${stId}${name === '' ? '' : ` ${JSON.stringify(name)}`}: ${text}`,
      ...causes.map((cause) => `  ${cause.sId}: ${cause.text}`),
    ]);
}
