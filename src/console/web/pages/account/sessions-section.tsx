import { useState } from 'preact/hooks';
import { endOneSession, listSessions } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import { ApiError } from '../../api/request.ts';
import type { ListedSession } from '../../api/types.ts';
import { leave } from '../../app/session.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, say } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';

/** Where the account is signed in. One session can be ended, or all but this one. */
export function SessionsSection() {
  const query = useQuery('account/sessions', listSessions);
  const [ending, setEnding] = useState<ListedSession[]>([]);
  const end = async () => {
    if (ending.some(({ current }) => current)) return leave();
    for (const { id } of ending) await endUnlessOver(id);
    setEnding([]);
    query.reload();
    say(count('account.sessionsEnded', ending.length));
  };
  return (
    <section class="panel panel-flush">
      <Answered query={query}>
        {(sessions) => {
          const others = sessions.filter(({ current }) => !current);
          const listed = [...sessions].sort(
            (a, b) => Number(b.current) - Number(a.current) || b.lastUsedTs - a.lastUsedTs,
          );
          return (
            <>
              <ul class="rows">
                {listed.map((session) => (
                  <SessionRow
                    key={session.id}
                    session={session}
                    onEnd={() => setEnding([session])}
                  />
                ))}
              </ul>
              {others.length > 0 && (
                <p class="rows-foot">
                  <button type="button" class="button" onClick={() => setEnding(others)}>
                    {count('account.endOthers', others.length)}
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Answered>
      {ending.length > 0 && (
        <Confirm
          title={titleOf(ending)}
          action={t('account.endSession')}
          onCancel={() => setEnding([])}
          onConfirm={end}
        >
          <p class="fine">{t('account.endHint')}</p>
        </Confirm>
      )}
    </section>
  );
}

function titleOf([first, ...more]: ListedSession[]): string {
  if (first?.current) return t('account.endThis');
  if (first && more.length === 0)
    return t('account.endOne', { name: nameOfProgram(first.userAgent) });
  return count('account.endOthers', more.length + 1);
}

/** If it has ended meanwhile, that is what was wanted. */
async function endUnlessOver(id: string): Promise<void> {
  try {
    await endOneSession(id);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
}

function SessionRow({ session, onEnd }: { session: ListedSession; onEnd: () => void }) {
  const { current, createdTs, lastUsedTs, address, userAgent, pushTokens } = session;
  const name = nameOfProgram(userAgent);
  return (
    <li class="row">
      <span class="row-icon">
        <Icon name="devices" />
      </span>
      <div class="row-text">
        <p class="row-title" title={userAgent}>
          {name}
          {current && <span class="tag tag-ok">{t('account.thisOne')}</span>}
          {pushTokens > 0 && <span class="tag">{t('account.hasPush')}</span>}
        </p>
        <p class="fine">
          {address !== undefined && <span class="row-part">{address}</span>}
          <span class="row-part">{t('account.began', { time: formatTime(createdTs) })}</span>
          <span class="row-part">
            {t('account.lastUsed')} <Ago ts={lastUsedTs} />
          </span>
        </p>
      </div>
      <button
        type="button"
        class="button"
        aria-label={current ? undefined : t('account.endOne', { name })}
        onClick={onEnd}
      >
        {t(current ? 'nav.signOut' : 'account.end')}
      </button>
    </li>
  );
}

// The first match: every browser also names others.
const programs: [RegExp, string][] = [
  [/Edg(e|A|iOS)?\//, 'Edge'],
  [/OPR\/|Opera/, 'Opera'],
  [/SamsungBrowser\//, 'Samsung Internet'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/(Headless)?Chrom(e|ium)\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: [RegExp, string][] = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

/** A readable name of the program that signed in: for a browser, its name and system. */
export function nameOfProgram(userAgent: string | undefined): string {
  if (userAgent === undefined) return t('account.unknownProgram');
  const find = (list: [RegExp, string][]) => list.find(([sign]) => sign.test(userAgent))?.[1];
  const program = find(programs);
  const system = find(systems);
  // Other programs name themselves first, such as curl/8.1.
  if (program === undefined) return userAgent.split(/[\s/]/)[0] || t('account.unknownProgram');
  return system === undefined ? program : t('account.programOn', { program, system });
}
