import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { getConfiguration, previewAction, sensesOf } from '../../../api/devices.ts';
import type { ActionPreview, DeviceAction, Sense } from '../../../api/types.ts';
import { Icon } from '../../../parts/icon.tsx';
import { Link } from '../../../parts/link.tsx';
import { Problem } from '../../../parts/panel.tsx';
import { count, t, tryText } from '../../../text/t.ts';
import { sayChanges } from '../../device/changes.ts';
import { begin } from '../jobs.tsx';

type Senses = ReadonlyMap<string, Sense>;
type Planned = { action: DeviceAction; preview: ActionPreview; senses: Senses };

type InstallFormProps = {
  /** What to install where; null: nothing is chosen yet. */
  action: DeviceAction | null;
  onBegun: () => void;
  onClose: () => void;
  /** How it is chosen. */
  children: ComponentChildren;
};

/** Installs purposes on devices; says before what they replace, what changes, and whom nobody would tell. */
export function InstallForm({ action, onBegun, onClose, children }: InstallFormProps) {
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    await work().catch(setError);
    setBusy(false);
  };
  const look = () =>
    run(async () => {
      if (!action) return;
      const preview = await previewAction(action);
      setPlanned({ action, preview, senses: await readSenses(preview) });
    });
  const install = () =>
    run(async () => {
      if (planned) await begin(planned.action);
      onBegun();
      onClose();
    });
  const changing = planned?.preview.devices.filter(({ outcome }) => outcome === 'install').length;
  return (
    <div class="form">
      {planned ? <Replaced {...planned} /> : children}
      {error !== null && <Problem error={error} />}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={planned ? () => setPlanned(null) : onClose}>
          {t(planned ? 'limits.back' : 'common.cancel')}
        </button>
        <button
          type="button"
          class="button button-main"
          aria-busy={isBusy}
          disabled={action === null || changing === 0}
          onClick={() => void (planned ? install() : look())}
        >
          {t(planned ? 'act.profile.do' : 'limits.next')}
        </button>
      </div>
    </div>
  );
}

/** What the sensors are called and their units, as on the first of the devices; without it, identifiers are said. */
async function readSenses({ devices }: ActionPreview): Promise<Senses> {
  const first = devices.find(({ outcome }) => outcome === 'install')?.deviceAuthUuid;
  const found = first === undefined ? null : await getConfiguration(first).catch(() => null);
  return found ? sensesOf(found) : new Map();
}

/** For each profile that the devices have: what goes, comes, stays and changes. */
function Replaced({ preview: { profiles, devices, warnings }, senses }: Planned) {
  const isSame = (place: number) =>
    devices.some(({ profile, outcome }) => profile === place && outcome === 'unchanged');
  const names = (some: readonly { name: string; puId: number }[] = []) =>
    some.map(({ name, puId }) => name || t('watch.purpose', { puId })).join(', ');
  return (
    <>
      <ul class="limit-changes">
        {profiles.map(({ pId, devices: number, goes, comes, stays, changed = [] }, place) => (
          <li key={place}>
            <strong>{count('fleet.devices', number)}</strong>
            {' – '}
            {isSame(place)
              ? t('install.same')
              : [
                  comes === undefined && t('install.tooMuch'),
                  pId === null && t('limits.noProfile'),
                  goes?.length && t('install.goes', { names: names(goes) }),
                  stays?.length && t('install.stays', { names: names(stays) }),
                  changed.length > 0 && t('install.changed', { names: names(changed) }),
                  comes?.length && t('install.comes', { names: names(comes) }),
                ]
                  .filter(Boolean)
                  .join(' ')}
            {changed.length > 0 && (
              <ul>
                {changed
                  .flatMap(({ before, after }) =>
                    before && after ? sayChanges(before, after, senses) : [t('install.tooMuch')],
                  )
                  .map((text) => (
                    <li key={text}>{text}</li>
                  ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      <Warned warnings={warnings} />
      <p class="fine">{t('limits.hint')}</p>
    </>
  );
}

/** Of whom nobody would be told, which contacts mend. */
const ofContacts = ['no-recipient', 'not-confirmed', 'too-mild'];

/** What may not work as intended; the service says in English what this page has no words for. */
function Warned({ warnings }: Pick<ActionPreview, 'warnings'>) {
  const texts = new Map(
    warnings.map(({ code, message }) => [tryText(`warning.${code}`, message), code]),
  );
  return (
    <ul class="troubles">
      {[...texts].map(([text, code]) => (
        <li key={text} class="trouble">
          <Icon name="warn" />
          <span>{text}</span>
          {ofContacts.includes(code) && (
            <Link to="account/contacts" class="link">
              {t('warning.toContacts')}
            </Link>
          )}
        </li>
      ))}
    </ul>
  );
}
