import { useState } from 'preact/hooks';
import { getDevice, rotateToken } from '../../api/devices.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { useKnownLatest } from '../../api/measurements.ts';
import type { Sense } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { AccessFacts, Snippets } from '../add/access-facts.tsx';
import type { TabProps } from './tab.ts';

const everyMs = 10_000;

/** How the device signs in, and a new password for it. */
export function AccessTab({ uuid, senses }: TabProps) {
  const query = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal), { everyMs });
  const [isShown, setIsShown] = useState(false);
  const [isAsked, setIsAsked] = useState(false);
  const [sense] = [...senses.values()];
  const newest = useKnownLatest(uuid).find(({ sId }) => sId === sense?.sId)?.val;
  const val = typeof newest === 'number' ? newest : exampleOf(sense);
  const message = JSON.stringify({ sId: sense?.sId ?? '0x10', val });
  return (
    <Answered query={query}>
      {({ device, connector, previousToken }) => {
        const access = { ...connector, deviceAuthUuid: uuid, deviceAuthToken: device.token };
        return (
          <div class="tab-form">
            <AccessFacts access={access} isShown={isShown} onShow={setIsShown} />
            <p class="connect-reveal">
              <button type="button" class="button" onClick={() => setIsAsked(true)}>
                {t('access.rotate')}
              </button>
              <span class="fine">{t(previousToken ? 'access.previous' : 'access.rotateHint')}</span>
            </p>
            <h3>{t('access.try')}</h3>
            <Snippets access={access} message={message} isShown={isShown} />
            {isAsked && (
              <RotateDialog
                uuid={uuid}
                onEnd={(isDone) => {
                  setIsAsked(false);
                  if (!isDone) return;
                  setIsShown(true);
                  say(t('access.rotated'));
                  reload(`device/${uuid}`);
                }}
              />
            )}
          </div>
        );
      }}
    </Answered>
  );
}

/** The middle of the allowed range. (A sense's newest value, used above, opens no alarm that is not open already.) */
const exampleOf = ({ min = 0, max = min + 10 }: Partial<Sense> = {}): number =>
  Math.round((min + max) / 2);

function RotateDialog({ uuid, onEnd }: { uuid: string; onEnd: (isDone: boolean) => void }) {
  const [revoke, setRevoke] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      await rotateToken(uuid, { revoke });
      onEnd(true);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <Dialog title={t('access.rotate')} onClose={() => onEnd(false)}>
      <form class="form" onSubmit={(event) => void send(event)}>
        <Problem error={error} />
        <fieldset class="stack">
          <legend>{t('access.old')}</legend>
          {[false, true].map((each) => (
            <label key={String(each)} class="option">
              <input
                type="radio"
                name="revoke"
                checked={revoke === each}
                onChange={() => setRevoke(each)}
              />
              <span>{t(each ? 'access.revoke' : 'access.keep')}</span>
            </label>
          ))}
        </fieldset>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => onEnd(false)}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main">
            {t('access.rotate')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
