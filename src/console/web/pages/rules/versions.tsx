import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { listVersions, restoreVersion } from '../../api/rules.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { text } from './texts.ts';

type VersionsProps = {
  uuid: string;
  /** The version that is known to be the newest. */
  tag: string;
  /** There are changes that are not saved. */
  isChanged: boolean;
  onRestored: () => void;
};

/** What the rule was before: when, by whom, why; an earlier version can be made the newest one. */
export function Versions(props: VersionsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{text('versions.title')}</summary>
      {isOpen && <List {...props} />}
    </details>
  );
}

function List({ uuid, tag, isChanged, onRestored }: VersionsProps) {
  const query = useQuery(`rule-versions/${uuid}`, (signal) => listVersions(uuid, signal));
  const [error, setError] = useState<unknown>(null);
  const [asked, setAsked] = useState<number | null>(null);
  const restore = async (version: number) => {
    await restoreVersion(uuid, version, tag);
    reload('rule-versions/');
    say(text('versions.restored', { version }));
    onRestored();
  };
  return (
    <Answered query={query}>
      {(versions) => (
        <ul class="try-list">
          {versions.map(({ version, timestamp, by, reason }, place) => (
            <li key={version} class="rule-row">
              <span class="rule-link">
                {text('versions.one', { version, time: formatTime(timestamp) })}
              </span>
              <span class="muted">
                {t(`profile.by.${by}`)} {reason ? t('profile.reason', { reason }) : ''}
              </span>
              {place > 0 && (
                <button
                  type="button"
                  class="button"
                  onClick={() =>
                    isChanged ? setAsked(version) : void restore(version).catch(setError)
                  }
                >
                  {text('versions.restore', { version })}
                </button>
              )}
            </li>
          ))}
          {asked !== null && (
            <Confirm
              title={text('versions.askTitle', { version: asked })}
              action={text('versions.restore', { version: asked })}
              onCancel={() => setAsked(null)}
              onConfirm={() => restore(asked)}
            >
              <p>{text('versions.ask')}</p>
            </Confirm>
          )}
          {error !== null && (
            <li>
              <Problem error={error} />
            </li>
          )}
        </ul>
      )}
    </Answered>
  );
}
