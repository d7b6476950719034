import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { listVersions, restoreVersion } from '../../api/rules.ts';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { text } from './texts.ts';

/** What the rule was before: when, by whom, why; an earlier version can be made the newest one. */
export function Versions({ uuid, onRestored }: { uuid: string; onRestored: () => void }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{text('versions.title')}</summary>
      {isOpen && <List uuid={uuid} onRestored={onRestored} />}
    </details>
  );
}

function List({ uuid, onRestored }: { uuid: string; onRestored: () => void }) {
  const query = useQuery(`rule-versions/${uuid}`, (signal) => listVersions(uuid, signal));
  const [error, setError] = useState<unknown>(null);
  const restore = async (version: number) => {
    try {
      await restoreVersion(uuid, version);
      reload('rule-versions/');
      say(text('versions.restored', { version }));
      onRestored();
    } catch (thrown) {
      setError(thrown);
    }
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
                <button type="button" class="button" onClick={() => void restore(version)}>
                  {text('versions.restore', { version })}
                </button>
              )}
            </li>
          ))}
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
