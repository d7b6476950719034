import type { Actions } from './actions.ts';
import type { Purpose, PurposePath } from './purpose.ts';
import { warning, type Warning } from './warnings.ts';

/** Actions that lack what they need, and so do nothing. */
export function warnOfActions(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  const warnings: Warning[] = [];
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions`;
        for (const [name, what] of lacking(actions))
          warnings.push(warning('incomplete-action', `${path}/${name}`, what));
      }
  return warnings;
}

function lacking({ sms, engine, display }: Actions): [name: string, what: string][] {
  const found: [string, string][] = [];
  if (sms && !sms.text) found.push(['sms', 'no SMS will be sent: it has no text']);
  else if (sms?.phoneNumber.length === 0)
    found.push(['sms', 'no SMS will be sent: it has no phoneNumber']);
  if (engine && engine.gotoStId === undefined && engine.gotoPuId === undefined)
    found.push(['engine', 'the device will not move: there is no gotoStId and no gotoPuId']);
  if (display && display.showText === undefined)
    found.push(['display', 'the device will show nothing: there is no showText']);
  return found;
}
