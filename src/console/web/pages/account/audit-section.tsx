import { listAudit } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { AuditEntry } from '../../api/types.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { formatFullTime } from '../../text/format.ts';
import { count, t, tryText } from '../../text/t.ts';
import { Pager } from '../fleet/fleet-page.tsx';
import { nameOfProgram } from './sessions-section.tsx';

const groups = {
  all: '',
  logins: 'login,login-refused,login-while-disabled,session-ended',
  account:
    'registered,password-changed,password-change-refused,password-reset-asked,password-reset,' +
    'reset-link-made,email-change-asked,email-change-refused,email-changed,settings-changed,' +
    'push-token-added,push-token-removed,key-made,key-revoked,quota-changed,quota-near,quota-used-up,sms-allowed,sms-denied,disabled,enabled',
  devices:
    'device-added,device-removed,device-token-rotated,device-token-revoked,device-token-retired,profile-installed,label-limits-changed,configuration-changed,command-given,command-cancelled,purpose-changed,purpose-removed,bulk-action',
  alarms:
    'alarm-acknowledged,alarm-closed,alarm-noted,alarm-reopened,alarm-snoozed,alarm-unsnoozed,device-muted,device-unmuted,bulk-action',
} as const;
type Group = keyof typeof groups;
const names = Object.keys(groups) as Group[];

/** Who did what to the account, newest first. */
export function AuditSection() {
  const asked = queryOf('of');
  const group = names.find((each) => each === asked) ?? 'all';
  const cursor = queryOf('cursor');
  const query = useQuery(`account/audit/${group}/${cursor}`, (signal) =>
    listAudit({ kinds: groups[group], cursor }, signal),
  );
  return (
    <>
      <label class="field audit-filter">
        <span>{t('audit.filter')}</span>
        <select
          value={group}
          onChange={({ currentTarget }) => {
            const of = currentTarget.value;
            setQuery({ of: of === 'all' ? '' : of, cursor: '' });
          }}
        >
          {names.map((each) => (
            <option key={each} value={each}>
              {t(`audit.of.${each}`)}
            </option>
          ))}
        </select>
      </label>
      <section class="panel panel-flush">
        <Answered query={query} lines={8}>
          {({ body: { entries }, next }) =>
            entries.length === 0 ? (
              <Empty icon="search" title={t('audit.none')} />
            ) : (
              <>
                <ul class="rows">
                  {entries.map((entry) => (
                    <Entry key={entry.auditId} entry={entry} />
                  ))}
                </ul>
                <Pager next={next} />
              </>
            )
          }
        </Answered>
      </section>
    </>
  );
}

const alarming = /refused|while-disabled|revoked|disabled/;

function Entry({ entry }: { entry: AuditEntry }) {
  const { timestamp, kind, by, address, count: number = 1, details } = entry;
  const device = details['deviceAuthUuid'];
  return (
    <li class="row">
      <div class="row-text">
        <p class={alarming.test(kind) ? 'row-title audit-refused' : 'row-title'}>
          {tryText(`audit.${kind}`, kind)}
          {number > 1 && <span class="tag">{count('audit.times', number)}</span>}
        </p>
        <p class="fine">
          <span class="row-part">{tryText(`audit.by.${by}`, by)}</span>
          {address !== undefined && <span class="row-part">{address}</span>}
          {detailsOf(details).map((text) => (
            <span key={text} class="row-part">
              {text}
            </span>
          ))}
          {typeof device === 'string' && (
            <span class="row-part">
              <Link to={`devices/${device}`}>{t('audit.device')}</Link>
            </span>
          )}
        </p>
      </div>
      <span class="fine audit-time">{formatFullTime(timestamp)}</span>
    </li>
  );
}

/** What matters to people: names rather than identifiers. */
function detailsOf(details: AuditEntry['details']): string[] {
  const { userAgent, name, email, changed, scopes, reason, quota, value } = details;
  const { action, labels, purposes, devices, alarms } = details;
  const fields = Array.isArray(changed)
    ? changed.map((field) => tryText(`audit.field.${field}`, field)).join(', ')
    : '';
  return [
    typeof userAgent === 'string' ? nameOfProgram(userAgent) : '',
    typeof name === 'string' ? name : '',
    typeof email === 'string' ? email : '',
    fields,
    Array.isArray(scopes) ? scopes.join(', ') : '',
    typeof action === 'string' ? tryText(`audit.action.${action}`, action) : '',
    Array.isArray(labels) ? labels.join(', ') : '',
    Array.isArray(purposes) ? purposes.join(', ') : '',
    typeof alarms === 'number' ? count('audit.alarms', alarms) : '',
    typeof devices === 'number' ? count('audit.devices', devices) : '',
    typeof reason === 'string' ? tryText(`audit.reason.${reason}`, reason) : '',
    quota === undefined
      ? ''
      : `${tryText(`quota.${String(quota)}`, String(quota))}: ${String(value)}`,
  ].filter(Boolean);
}
